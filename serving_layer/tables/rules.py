"""`alert_versions`, as far as rules go."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from master_dataset.cassandra_errors import AWAY
from master_dataset.errors import StoreUnavailable
from master_dataset.registry.rule_versions import Kind, RuleVersions, VersionRow

Found = TypeVar("Found")


class RuleTables:
    """Versions of AlertRules. Blocks."""

    def __init__(self, versions: RuleVersions) -> None:
        """`versions`: as they are kept."""
        self._versions = versions

    def rules(self, tenant: str) -> Sequence[VersionRow]:
        """As Versions."""
        return _asked(lambda: self._versions.rules(tenant))

    def all_of(self, kind: Kind, id_: str) -> Sequence[VersionRow]:
        """As Versions."""
        return _asked(lambda: self._versions.all_of(kind, id_))

    def follow(self, id_: str, body: str, after: int) -> VersionRow | None:
        """As Versions."""
        return _asked(lambda: self._versions.follow(id_, body, after))

    def effective_at(self) -> datetime:
        """As Versions."""
        return self._versions.effective_at()


def _asked(call: Callable[[], Found]) -> Found:
    try:
        return call()
    except AWAY as error:
        message = f"Cassandra did not answer: {type(error).__name__}."
        raise StoreUnavailable(message, do="Ask again; `galatea status` says what is wrong.") from error
