"""`alerts.yaml`: read the rules of a file, plan the changes and apply them, after all rules are validated."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from master_dataset.errors import BadFileError, BadRuleError
from master_dataset.registry.stores import Store
from master_dataset.registry.yaml_text import read_text, read_yaml
from serving_layer.alerts.rules import AlertRules, RuleAuthor, RuleEntry, fields_of
from views.alerts.rule import Rule

MOST_BYTES = 4 * 1024 * 1024
MOST_RULES = 10_000
KNOWN = ("tenant", "rules")


class RulesFile(NamedTuple):
    """The content of a file. `tenant`: of rules that name none, or None. `rules`: all scalars are text."""

    tenant: str | None
    rules: list[dict[str, Any]]


def load(file: Path) -> RulesFile:
    """Read an `alerts.yaml`. BadFileError."""
    too_long = "Split it, and apply it without --prune."
    return read(read_text(file, MOST_BYTES, if_too_long=too_long, if_unreadable="Name an alerts.yaml."))


def read(text: str) -> RulesFile:
    """Read the text of an `alerts.yaml`: a list `rules`. BadFileError."""
    document = read_yaml(text, most_characters=MOST_BYTES)
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        raise BadFileError("`rules` must be a list of rules.", do="Write `rules:`, and a rule on each `-` below.")
    if other := [name for name in document if name not in KNOWN]:
        raise BadFileError(f"`{other[0]}` is not a field of the file.", do=f"Use one of: {', '.join(KNOWN)}.")
    rules, tenant = document["rules"], document.get("tenant")
    if len(rules) > MOST_RULES:
        raise BadFileError(f"`rules` holds more than {MOST_RULES:,} rules.", do="Split the file.")
    if tenant is not None and not (isinstance(tenant, str) and tenant):
        raise BadFileError("`tenant` must be a name.", do="Write one, or leave it out.")
    if wrong := [number for number, rule in enumerate(rules) if not isinstance(rule, dict)]:
        raise BadFileError(
            f"`rules[{wrong[0]}]` must be a rule.", do="Write `kind`, `id` and what belongs to the kind."
        )
    return RulesFile(tenant, rules)


Does = Literal["create", "change", "keep", "remove"]


@dataclass(frozen=True)
class RuleChange:
    """The change of one rule. `before` is None for a new rule, `after` for a removed one."""

    tenant: str
    id: str
    before: RuleEntry | None
    after: Rule | None

    @property
    def does(self) -> Does:
        """The kind of change."""
        if self.before is None or self.before.removed:
            return "create"
        if self.after is None:
            return "remove"
        return "keep" if self.after == self.before.rule else "change"

    @property
    def differs(self) -> Mapping[str, tuple[Any, Any]]:
        """The old and the new value of each field that changes; None for no value."""
        before = fields_of(self.before.rule) if self.before and self.before.rule else {}
        after = fields_of(self.after) if self.after else {}
        names = dict.fromkeys([*before, *after])
        return {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)}


def plan_changes(
    rules: AlertRules, stores: Mapping[str, Store], wanted: Sequence[tuple[str, object]], *, prune: Iterable[str] = ()
) -> list[RuleChange]:
    """Validate all rules and plan the changes.

    Args:
        rules: of the tenants.
        stores: all registered stores.
        wanted: the rules of the file, each with its tenant.
        prune: tenants whose other rules are removed.

    Raises:
        BadRuleError: a rule is not valid; names its place in the file.
    """
    after: dict[tuple[str, str], Rule] = {}
    for number, (tenant, said) in enumerate(wanted):
        rule = _judged(rules, RuleAuthor(tenant, stores), said, f"rules[{number}]")
        if (tenant, rule.id) in after:
            message = f"`rules[{number}]` repeats the rule `{rule.id}`."
            raise BadRuleError(f"rules[{number}].id", message, do="Write each once.")
        after[tenant, rule.id] = rule
    tenants = dict.fromkeys([*(tenant for tenant, _ in wanted), *prune])
    before = {(entry.tenant, entry.id): entry for tenant in tenants for entry in rules.listed(tenant)}
    gone = [key for key in before if key not in after and key[0] in set(prune)]
    for tenant in tenants:
        number = sum(key[0] == tenant for key in {*before, *after}.difference(gone))
        if any(key[0] == tenant for key in after):
            rules.refuse_many(tenant, number)
    return [RuleChange(*key, before.get(key), after.get(key)) for key in (*gone, *after)]


def apply_changes(rules: AlertRules, steps: Sequence[RuleChange]) -> Sequence[RuleEntry]:
    """Apply the changes, all of them or none, and return the new versions.

    Raises:
        RuleMovedError: a rule was changed or created in the meantime.
        BadFileError: the changes are too large to be written together; none was written.
    """
    changed = [step for step in steps if step.does != "keep"]
    return rules.change_all(
        [((step.tenant, step.id), step.after, step.before.version if step.before else None) for step in changed]
    )


def _judged(rules: AlertRules, author: RuleAuthor, said: object, where: str) -> Rule:
    try:
        return rules.judged(author, said)
    except BadRuleError as error:
        field = f"{where}.{error.field}" if error.field else where
        raise BadRuleError(field, f"In `{where}`: {error.message}", do=error.do, fires=error.fires) from error
