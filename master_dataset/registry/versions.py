"""What is loaded from files, in versions: a load writes a new one beside the current one, and then switches to it.

The row of a tenant names its current version, and is switched by compare-and-set. So readers see all of a load or
nothing of it, and of two loads at once, one fails and leaves nothing behind.
"""

# ruff: noqa: S608 - names of our own tables and columns

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import structlog
from cassandra import ConsistencyLevel

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError, RequestError

if TYPE_CHECKING:
    from cassandra.cluster import Session

_ABANDONED = timedelta(days=1)
"""After this time, the blocks of a load that never switched are removed."""
log = structlog.get_logger()


class LoadedVersion(NamedTuple):
    """A version that is current now.

    Attributes:
        version: Its name.
        counts: The values of its own columns.
        loaded_at: When it was loaded.
        previous: The version that it has replaced; empty if there was none.
        outdated: The one before that, which nobody reads any more; likewise.
    """

    version: str
    counts: Sequence[int]
    loaded_at: datetime
    previous: str = ""
    outdated: str = ""


Stage = Callable[[str, Any], Sequence[int]]
"""Writes the blocks of a new version beside those of the former row (None: there is none); returns its counts."""


class VersionedTables(ABC):
    """The tables of one kind of data. All methods raise CassandraUnavailableError."""

    kind: ClassVar[str]
    """What is loaded, such as `products`."""
    versions: ClassVar[str]
    """The table with a row for each tenant."""
    counts: ClassVar[Sequence[str]]
    """The columns of that table which describe a version."""
    blocks: ClassVar[str]
    """The table of the blocks of all versions."""
    partition: ClassVar[Sequence[str]]
    """The partition key of that table, with `tenant` and `version`."""
    changed: ClassVar[type[RequestError]]
    """The error of a load that was overtaken by another one."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        fields = ["version", *self.counts, "loaded_at", "previous"]
        marks = ", ".join("?" * (1 + len(fields)))
        self._read = session.prepare(f"SELECT {', '.join(fields)} FROM {self.versions} WHERE tenant = ?")
        self._first = session.prepare(
            f"INSERT INTO {self.versions} (tenant, {', '.join(fields)}) VALUES ({marks}) IF NOT EXISTS"
        )
        changes = ", ".join(f"{field} = ?" for field in fields)
        self._switch = session.prepare(f"UPDATE {self.versions} SET {changes} WHERE tenant = ? IF version = ?")

    def current(self, tenant: str) -> Any:  # noqa: ANN401 - a row of the driver
        """The row of the tenant's current version; None if none was ever loaded."""
        return self._session.execute(self._read, (tenant,)).one()

    def load_version(self, tenant: str, stage: Stage) -> LoadedVersion:
        """Write a version, and make it the tenant's current one: all of it or nothing.

        Args:
            tenant: Whose data it is.
            stage: Writes the blocks.

        Returns:
            The new version, which readers see within a second.

        Raises:
            RequestError: What `stage` raises, or `changed` if another load was faster.
        """
        loaded = self.switch_version(tenant, stage)
        self.remove_old(tenant, loaded)
        return loaded

    def switch_version(self, tenant: str, stage: Stage) -> LoadedVersion:
        """As `load_version`; call `remove_old` afterwards."""
        try:
            return self._switch_version(tenant, stage)
        except CASSANDRA_UNAVAILABLE as error:
            raise self._unanswered(type(error).__name__) from error

    def _unanswered(self, why: str) -> CassandraUnavailableError:
        message = f"Cassandra did not answer: {why}."
        return CassandraUnavailableError(message, do=f"Load the {self.kind} again; it is safe to repeat.")

    @abstractmethod
    def remove_version(self, tenant: str, version: str) -> None:
        """Delete all blocks of a version."""

    def overtaken(self, tenant: str) -> RequestError:
        """The error of a load whose former version is no longer the current one."""
        message = f"Another load has changed the {self.kind} of tenant `{tenant}` in the meantime."
        return self.changed(message, do=f"Load the {self.kind} again; nothing of this load was kept.")

    def _switch_version(self, tenant: str, stage: Stage) -> LoadedVersion:
        before = self.current(tenant)
        version = f"{time.time_ns() // 10**6:013d}-{uuid.uuid4().hex}"
        try:
            found = (before.version, before.previous) if before else ("", "")
            loaded = LoadedVersion(version, stage(version, before), datetime.now(UTC), *found)
        except BaseException:
            self.remove_version(tenant, version)
            raise
        self._put(tenant, loaded)
        return loaded

    def _put(self, tenant: str, loaded: LoadedVersion) -> None:
        former = loaded.previous
        fields = (loaded.version, *loaded.counts, loaded.loaded_at, former)
        switch = self._switch.bind((*fields, tenant, former)) if former else self._first.bind((tenant, *fields))
        unknown: Exception | None = None
        try:
            applied = self._session.execute(switch).one().applied
        except CASSANDRA_UNAVAILABLE as error:  # whether it was written is unknown; a serial read may settle it
            applied, unknown = False, error
        if not applied:
            settle = self._session.prepare(f"SELECT version FROM {self.versions} WHERE tenant = ?")
            settle.consistency_level = ConsistencyLevel.SERIAL
            row = self._session.execute(settle, (tenant,)).one()
            if row is None or row.version != loaded.version:
                if unknown is not None:  # a node that was suspended may still apply it: its blocks stay
                    raise self._unanswered(type(unknown).__name__) from unknown
                self.remove_version(tenant, loaded.version)
                raise self.overtaken(tenant)

    def remove_old(self, tenant: str, loaded: LoadedVersion) -> None:
        """Remove the version before the one just replaced, which readers may still use, and abandoned ones.

        If Cassandra does not answer, a later load does it.
        """
        oldest = f"{int((datetime.now(UTC) - _ABANDONED).timestamp() * 1000):013d}"
        try:
            rows: Any = self._session.execute(f"SELECT DISTINCT {', '.join(self.partition)} FROM {self.blocks}")
            old = {row.version for row in rows if row.tenant == tenant and row.version < oldest}
            for version in (old | {loaded.outdated}) - {loaded.version, loaded.previous, ""}:
                self.remove_version(tenant, version)
        except CASSANDRA_UNAVAILABLE as error:
            log.warning("versions.not_removed", kind=self.kind, error=type(error).__name__)
