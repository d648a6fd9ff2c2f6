"""Reads a rule as somebody wrote it, in a file or a request, and refuses one that makes no sense.

BadRule names the field, says what is wrong with it in one sentence, and what to write instead.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches

import msgspec

from master_dataset.errors import BadRule
from master_dataset.registry.stores import Store
from views.alerts.rule import Rule
from views.alerts.rule_validation import refuse_senseless

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}").fullmatch
MOST_STORES = 10_000
MOST_NAME_BYTES = 256
_PLACE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<field>[^`]*)`)?$").fullmatch
_NAMED = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<field>\w+)`").match
_FIELDS = {kind.__struct_config__.tag: kind.__struct_fields__ for kind in Rule.__args__}
KINDS = tuple(str(tag) for tag in _FIELDS)


def read_rule(said: object, stores: Mapping[str, Store] | None = None) -> Rule:
    """The rule of an object of plain values. `stores`: those that are registered, where they are known. BadRule."""
    try:
        rule: Rule = msgspec.convert(said, Rule, strict=False)
    except msgspec.ValidationError as error:
        raise _unreadable(str(error), said) from error
    if not _ID(rule.id):
        message = f"`id` is `{rule.id[:64]}`, which is no name for a rule."
        raise BadRule("id", message, do="Write small letters, digits, `.`, `_` and `-`, at most 64: `queue-too-long`.")
    if len(rule.name.encode()) > MOST_NAME_BYTES:
        raise BadRule("name", f"`name` is longer than {MOST_NAME_BYTES} bytes.", do="Write a shorter one.")
    _refuse_stores(rule, stores)
    refuse_senseless(rule, _own(rule, stores))
    return rule


def _unreadable(error: str, said: object) -> BadRule:
    kind = str(said.get("kind")) if isinstance(said, dict) else ""
    named, place = _NAMED(error), _PLACE(error)
    if named and named["how"].startswith("missing"):
        field = named["field"]
        do = f"Say `kind`: {', '.join(KINDS)}." if field == "kind" else f"Add `{field}`."
        return BadRule(field, f"`{field}` is missing.", do=do)
    if named:
        known = _FIELDS.get(kind, ())
        near = get_close_matches(named["field"], known, n=1)
        do = f"Did you mean `{near[0]}`?" if near else f"There is: {', '.join(known)}."
        return BadRule(named["field"], f"`{named['field']}` is no field of a rule of kind `{kind}`.", do=do)
    field = place["field"] or "" if place else ""
    if field == "kind":
        return BadRule("kind", f"`{kind}` is no kind of rule.", do=f"There is: {', '.join(KINDS)}.")
    what = place["what"] if place else error
    if not field:
        return BadRule("", "A rule is an object with `id` and `kind`.", do=f"Kinds are: {', '.join(KINDS)}.")
    return BadRule(field, f"`{field}` cannot be read: {what}.", do="Write a value of that type.")


def _refuse_stores(rule: Rule, stores: Mapping[str, Store] | None) -> None:
    if rule.stores is None:
        return
    if not rule.stores:
        message = "`stores` is empty, so the rule can never fire."
        raise BadRule("stores", message, do="Name a store, leave `stores` out for all, or write `on: false`.")
    if len(rule.stores) > MOST_STORES or len(set(rule.stores)) < len(rule.stores):
        message = f"`stores` repeats a store, or names more than {MOST_STORES:,}."
        raise BadRule("stores", message, do="Name each store once, or leave `stores` out for all.")
    for store in rule.stores if stores is not None else ():
        found = stores.get(store) if stores else None
        if found is None or found.tenant != rule.tenant:  # a shop of another tenant is an unknown one
            message = f"`stores` names `{store}`, which is no store of the tenant `{rule.tenant}`."
            raise BadRule("stores", message, do="Register it with `galatea stores load FILE`, or leave it out.")


def _own(rule: Rule, stores: Mapping[str, Store] | None) -> list[Store]:
    return [each for each in (stores or {}).values() if rule.watches(each.id, each.tenant)]
