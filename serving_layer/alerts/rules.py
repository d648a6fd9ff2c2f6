"""Alert rules of tenants: list, validate, preview and change them, for REST, pages and the command line.

All functions but those of `AlertService` block. Every change is a version after the one that its author has seen, so
nobody overwrites a change that they have not seen.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import msgspec

from master_dataset.errors import BadRuleError, UnknownNameError
from master_dataset.registry.rule_versions import Kind, RuleEdit, VersionRow
from master_dataset.registry.stores import Store
from serving_layer.alerts.history import AlertListing
from serving_layer.errors import RuleExistsError, RuleMovedError, TooBusyError
from serving_layer.responses.alerts import AlertRule, RulePreview, RuleProblem
from serving_layer.responses.encoding import encode, iso_instant
from views.alerts.rule import Rule
from views.alerts.rule_history import decode_rule
from views.alerts.rule_validation import parse_rule
from views.alerts.sentences import describe_rule

UNREADABLE = "Watches nothing: this release cannot read it, as a newer one may have written it. Replace or remove it."


@dataclass(frozen=True)
class RuleEntry:
    """A version of a rule. `rule` is None if the rule was removed, or if this release cannot read it (`unreadable`)."""

    tenant: str
    id: str
    version: int
    effective_at: datetime
    rule: Rule | None
    unreadable: bool = False

    @classmethod
    def of(cls, row: VersionRow) -> Self:
        """The version in a row of the table."""
        tenant, _, id_ = row.id.rpartition("/")
        rule = decode_rule(row.id, row.number, row.body)
        return cls(tenant, id_, row.number, row.effective_at, rule, bool(row.body) and rule is None)

    @property
    def removed(self) -> bool:
        """Whether this version removes the rule."""
        return self.rule is None and not self.unreadable

    @property
    def in_words(self) -> str | None:
        """The rule as a sentence; None if it was removed."""
        if self.rule is None:
            return UNREADABLE if self.unreadable else None
        return describe_rule(self.rule)

    def response(self) -> AlertRule:
        """The version as the API shows it, with numbers as they were written."""
        return AlertRule(
            id=self.id,
            tenant=self.tenant,
            version=self.version,
            effective_at=iso_instant(self.effective_at),
            removed=self.removed,
            unreadable=self.unreadable,
            in_words=self.in_words,
            rule=self.rule,
        )


def fields_of(rule: Rule) -> dict[str, Any]:
    """A rule as plain values without defaults, as its author would write it."""
    said: dict[str, Any] = json.loads(encode(rule), parse_float=Decimal)
    return {name: value for name, value in said.items() if value is not None}


MAX_RULES = 100
"""Default limit of one tenant."""
ANY_VERSION = -1
"""As expected version: any."""


class Versions(Protocol):
    """Where versions are stored: `RuleVersions`. Raises CassandraUnavailableError."""

    def rules(self, tenant: str) -> Sequence[VersionRow]:
        """The newest version of every rule of the tenant, also of removed ones."""

    def all_of(self, kind: Kind, id_: str) -> Sequence[VersionRow]:
        """All versions, newest first."""

    def follow(self, id_: str, body: str, after: int) -> VersionRow | None:
        """Add a version after the version `after`; None if there already is one."""

    def follow_all(self, changes: Sequence[RuleEdit]) -> Sequence[VersionRow] | None:
        """Add a version of each, or of none; None if there already is one of them."""

    def effective_at(self) -> datetime:
        """When a version takes effect that is written now."""


RuleKey = tuple[str, str]
"""Tenant and id."""


class RuleAuthor(NamedTuple):
    """The tenant of the rules, and all registered stores."""

    tenant: str
    stores: Mapping[str, Store]


class AlertRules:
    """Lists and changes the rules of tenants. One per process."""

    def __init__(self, versions: Versions, most: int = MAX_RULES) -> None:
        """`most`: rules of one tenant."""
        self._versions, self.most = versions, most

    def listed(self, tenant: str) -> list[RuleEntry]:
        """The rules of the tenant by id."""
        found = (RuleEntry.of(row) for row in self._versions.rules(tenant) if row.body)
        return sorted(found, key=lambda entry: entry.id)

    def one(self, tenant: str, id_: str) -> RuleEntry:
        """The newest version of a rule. Raises UnknownNameError."""
        newest = next(iter(self._of(tenant, id_)), None)
        if newest is None or newest.removed:
            raise self._unknown(tenant, id_)
        return newest

    def history(self, tenant: str, id_: str) -> list[RuleEntry]:
        """All versions of a rule, newest first, also of a removed one. Raises UnknownNameError."""
        found = self._of(tenant, id_)
        if not found:
            raise self._unknown(tenant, id_)
        return found

    def judged(self, author: RuleAuthor, said: object, id_: str | None = None) -> Rule:
        """Validate a rule given as plain values. `id_`: the id that it must have, or None. Raises BadRuleError."""
        if isinstance(said, dict):
            said = {**({"id": id_} if id_ is not None else {}), "tenant": author.tenant, **said}
            if said["tenant"] != author.tenant:
                raise BadRuleError("tenant", f"`tenant` is not `{author.tenant}`.", do="Leave `tenant` out.")
            if id_ is not None and said["id"] != id_:
                message = f"`id` is not `{id_}`, which is the rule to be changed."
                raise BadRuleError("id", message, do="Leave `id` out, or make another rule of it.")
        return parse_rule(said, author.stores)

    def create(self, author: RuleAuthor, said: object) -> RuleEntry:
        """Create a rule. Raises BadRuleError and RuleExistsError."""
        rule = self.judged(author, said)
        newest = next(iter(self._of(author.tenant, rule.id)), None)
        if newest and not newest.removed:
            raise RuleExistsError(
                f"There is a rule `{rule.id}` already.", do="Change that one, or choose another `id`."
            )
        self.refuse_many(author.tenant, len(self.listed(author.tenant)) + 1)
        return self._follow(rule, newest.version if newest else 0)

    def replace(self, author: RuleAuthor, id_: str, said: object, expected: int = ANY_VERSION) -> RuleEntry:
        """Replace a rule that is at the `expected` version; an identical rule makes no new version.

        Raises:
            UnknownNameError: there is no such rule.
            BadRuleError: the new rule is not valid.
            RuleMovedError: the rule is at another version.
        """
        before = self._expected(author.tenant, id_, expected)
        rule = self.judged(author, said, id_)
        if before.rule == rule:
            return before
        return self._follow(rule, before.version)

    def remove(self, tenant: str, id_: str, expected: int = ANY_VERSION) -> RuleEntry:
        """Remove a rule that is at the `expected` version. Raises UnknownNameError and RuleMovedError."""
        before = self._expected(tenant, id_, expected)
        row = self._versions.follow(f"{tenant}/{id_}", "", before.version)
        if row is None:
            raise _moved(id_)
        return RuleEntry.of(row)

    def change_all(self, changes: Sequence[tuple[RuleKey, Rule | None, int | None]]) -> Sequence[RuleEntry]:
        """Change several rules, which are validated: all of them or none.

        Args:
            changes: tenant and id, the rule (None: it is removed), and the version that it was read at; None: there was
                no such rule.

        Raises:
            RuleMovedError: one of them was changed in the meantime.
        """
        edits = [
            RuleEdit("/".join(key), _body(rule) if rule else "", self._free(*key) if after is None else after)
            for key, rule, after in changes
        ]
        rows = self._versions.follow_all(edits) if edits else ()
        if rows is None:
            raise _one_moved()
        return [RuleEntry.of(row) for row in rows]

    def effective_at(self) -> datetime:
        """When a rule takes effect that is written now."""
        return self._versions.effective_at()

    def refuse_many(self, tenant: str, number: int) -> None:
        """Raise BadRuleError if a tenant may not have so many rules."""
        if number > self.most:
            message = f"The tenant `{tenant}` would have {number} rules, and may have {self.most}."
            raise BadRuleError("id", message, do="Remove some, or raise `GALATEA_ALERT_RULES_PER_TENANT`.")

    def _expected(self, tenant: str, id_: str, expected: int) -> RuleEntry:
        before = self.one(tenant, id_)
        if expected not in (ANY_VERSION, before.version):
            raise _moved(id_)
        return before

    def _follow(self, rule: Rule, after: int) -> RuleEntry:
        row = self._versions.follow(f"{rule.tenant}/{rule.id}", _body(rule), after)
        if row is None:
            raise _moved(rule.id)
        return RuleEntry.of(row)

    def _of(self, tenant: str, id_: str) -> list[RuleEntry]:
        found = (RuleEntry.of(row) for row in self._versions.all_of("rule", f"{tenant}/{id_}"))
        # An id with a `/` could name a rule of another tenant.
        return [entry for entry in found if entry.tenant == tenant]

    def _free(self, tenant: str, id_: str) -> int:
        """The version after which a rule begins: that of its removal, or 0. RuleMovedError if there is one already."""
        newest = next(iter(self._of(tenant, id_)), None)
        if newest and not newest.removed:
            raise _one_moved()
        return newest.version if newest else 0

    def _unknown(self, tenant: str, id_: str) -> UnknownNameError:
        return UnknownNameError("rule", id_, [entry.id for entry in self.listed(tenant)])


def _body(rule: Rule) -> str:
    return msgspec.json.encode(rule).decode()


def _one_moved() -> RuleMovedError:
    message = "One of the rules was changed since they were read; none is changed now."
    return RuleMovedError(message, do="Read them again, and apply what they say now.")


def _moved(id_: str) -> RuleMovedError:
    message = f"The rule `{id_}` was changed since you read it."
    return RuleMovedError(message, do="Read it again, and change what it says now.")


SHOWN_STORES = 20


def preview(rules: AlertRules, author: RuleAuthor, said: object) -> RulePreview:
    """Validate a rule without saving it. Raises CassandraUnavailableError."""
    try:
        rule = rules.judged(author, said)
        before = _before(rules, author.tenant, rule.id)
        if before is None:
            rules.refuse_many(author.tenant, len(rules.listed(author.tenant)) + 1)
    except BadRuleError as error:
        return RulePreview(
            accepted=False,
            fires=error.fires,
            problem=RuleProblem(error.field, error.message, error.do, error.code),
            in_words=None,
            stores=[],
            stores_total=0,
            effective_at=None,
            rule=None,
            before=None,
        )
    watched = sorted(each.id for each in author.stores.values() if rule.watches(each.id, each.tenant))
    return RulePreview(
        accepted=True,
        fires=None,
        problem=None,
        in_words=describe_rule(rule),
        stores=watched[:SHOWN_STORES],
        stores_total=len(watched),
        effective_at=iso_instant(rules.effective_at()),
        rule=rule,
        before=before,
    )


def _before(rules: AlertRules, tenant: str, id_: str) -> Rule | None:
    try:
        return rules.one(tenant, id_).rule
    except UnknownNameError:
        return None


MAX_WAITING = 16
"""Requests about rules in progress in one process; those of one tenant are at most three quarters of them."""
Found = TypeVar("Found")


@dataclass
class AlertService:
    """Alerts and their rules, for the event loop. One per process and event loop."""

    rules: AlertRules
    alerts: AlertListing
    _waiting: Counter[str] = field(default_factory=Counter)

    async def in_thread(self, tenant: str, work: Callable[[AlertRules], Found]) -> Found:
        """Run a function of the rules of a tenant in a thread. Raises what it raises, and TooBusyError."""
        own, total = self._waiting[tenant], self._waiting.total()
        if total >= MAX_WAITING or own >= MAX_WAITING * 3 // 4:
            number = total if total >= MAX_WAITING else own
            raise TooBusyError(f"{number} requests about alert rules are already in progress.", do="Try again.")
        self._waiting[tenant] += 1
        try:
            return await asyncio.to_thread(work, self.rules)
        finally:
            self._waiting -= Counter([tenant])  # forgets who has none
