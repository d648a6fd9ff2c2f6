"""Makes the rules of tenants those of a file: all of it is judged before any of it is written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from master_dataset.errors import BadRule
from master_dataset.registry.stores import Store
from serving_layer.alerts.rule_entry import RuleEntry, fields_of
from serving_layer.alerts.rules import AlertRules, Author
from views.alerts.rule import Rule

Does = Literal["create", "change", "keep", "remove"]


@dataclass(frozen=True)
class Step:
    """What becomes of one rule. `before`, `after`: None where there is none."""

    tenant: str
    id: str
    before: RuleEntry | None
    after: Rule | None

    @property
    def does(self) -> Does:
        """In a word."""
        if self.before is None or self.before.removed:
            return "create"
        if self.after is None:
            return "remove"
        return "keep" if self.after == self.before.rule else "change"

    @property
    def differs(self) -> Mapping[str, tuple[Any, Any]]:
        """Field to what it said and what it will say; None: nothing."""
        before = fields_of(self.before.rule) if self.before and self.before.rule else {}
        after = fields_of(self.after) if self.after else {}
        names = dict.fromkeys([*before, *after])
        return {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)}


def planned(
    rules: AlertRules, stores: Mapping[str, Store], wanted: Sequence[tuple[str, object]], *, prune: Iterable[str] = ()
) -> list[Step]:
    """`wanted`: each with its tenant. `prune`: tenants whose other rules are removed. BadRule names the place."""
    after: dict[tuple[str, str], Rule] = {}
    for number, (tenant, said) in enumerate(wanted):
        rule = _judged(rules, Author(tenant, stores), said, f"rules[{number}]")
        if (tenant, rule.id) in after:
            message = f"`rules[{number}]` repeats the rule `{rule.id}`."
            raise BadRule(f"rules[{number}].id", message, do="Write each once.")
        after[tenant, rule.id] = rule
    tenants = dict.fromkeys([*(tenant for tenant, _ in wanted), *prune])
    before = {(entry.tenant, entry.id): entry for tenant in tenants for entry in rules.listed(tenant)}
    gone = [key for key in before if key not in after and key[0] in set(prune)]
    for tenant in tenants:
        number = sum(key[0] == tenant for key in {*before, *after}.difference(gone))
        if any(key[0] == tenant for key in after):
            rules.refuse_many(tenant, number)
    return [Step(*key, before.get(key), after.get(key)) for key in (*gone, *after)]


def applied(rules: AlertRules, stores: Mapping[str, Store], steps: Sequence[Step]) -> Iterable[RuleEntry]:
    """Do each; what it leads to. What is removed goes first. RuleMoved, RuleExists if somebody came in between."""
    for step in steps:
        author = Author(step.tenant, stores)
        said = fields_of(step.after) if step.after else {}
        if step.before is None:
            yield rules.create(author, said)
        elif step.after is None:
            yield rules.remove(step.tenant, step.id, step.before.version)
        else:
            yield rules.replace(author, step.id, said, step.before.version)


def _judged(rules: AlertRules, author: Author, said: object, where: str) -> Rule:
    try:
        return rules.judged(author, said)
    except BadRule as error:
        field = f"{where}.{error.field}" if error.field else where
        raise BadRule(field, f"In `{where}`: {error.message}", do=error.do, fires=error.fires) from error
