"""A version of a rule, as people see it."""

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Self

from master_dataset.registry.rule_versions import VersionRow
from serving_layer.query.timestamps import stamp
from serving_layer.responses.alerts import AlertRule
from serving_layer.responses.encoding import encode
from views.alerts.in_words import in_words
from views.alerts.rule import Rule
from views.alerts.rule_history import read_version

UNREADABLE = "Watches nothing: this release cannot read it, as a newer one may have written it. Replace or remove it."


@dataclass(frozen=True)
class RuleEntry:
    """`rule`: None: from then on there is none of that id, or one, `unreadable`, that no rule of this release is."""

    tenant: str
    id: str
    version: int
    effective_at: datetime
    rule: Rule | None
    unreadable: bool = False

    @classmethod
    def of(cls, row: VersionRow) -> Self:
        """As the table has it."""
        tenant, _, id_ = row.id.rpartition("/")
        rule = read_version(row.id, row.number, row.body)
        return cls(tenant, id_, row.number, row.effective_at, rule, bool(row.body) and rule is None)

    @property
    def removed(self) -> bool:
        """Whether there is no rule of that id from then on."""
        return self.rule is None and not self.unreadable

    @property
    def in_words(self) -> str | None:
        """What it says."""
        if self.rule is None:
            return UNREADABLE if self.unreadable else None
        return in_words(self.rule)

    def response(self) -> AlertRule:
        """As the API shows it; numbers as they were written."""
        return AlertRule(
            id=self.id,
            tenant=self.tenant,
            version=self.version,
            effective_at=stamp(self.effective_at),
            removed=self.removed,
            unreadable=self.unreadable,
            in_words=self.in_words,
            rule=self.rule,
        )


def fields_of(rule: Rule) -> dict[str, Any]:
    """A rule as plain values, without what is as ever: as its author would write it."""
    said: dict[str, Any] = json.loads(encode(rule), parse_float=Decimal)
    return {name: value for name, value in said.items() if value is not None}
