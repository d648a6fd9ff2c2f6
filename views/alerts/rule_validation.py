"""Reads a rule from a file or request, and rejects one that can never fire, or would always fire.

Examples are a bound that no window reaches, and a silence that is normal. BadRuleError names the field,
the problem, and what to write instead.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches

import msgspec

from master_dataset.errors import BadRuleError, Fires, UnknownNameError
from master_dataset.registry.hidden_characters import hidden_character
from master_dataset.registry.stores import Store
from master_dataset.registry.tenants import wrong_tenant
from master_dataset.sources import registered_sources
from master_dataset.sources.queue_events import MOST_WAITING
from views.alerts.rule import Level, Rule, Silence, Threshold
from views.alerts.rule_metrics import alertable_metrics, value_range
from views.alerts.shop_clock import longest_open
from views.core.metric import ALL, Metric
from views.metrics import registered_metrics

MAX_DIGITS = 6
"""Behind the decimal point."""
MAX_SHOWN_DIGITS = 18
"""Digits before it that a refusal repeats."""
MAX_PEOPLE = 100_000
MAX_PERCENT_ABOVE = 10_000
MAX_SILENT_MINUTES = MAX_LEVEL_MINUTES = 24 * 60
MIN_SILENT_MINUTES = 2
_MINUTES_OPEN = {"15m": 15, "hour": 60, "day": 1}
"""Minutes that a shop has to be open for such a window to count."""


def validate_rule(rule: Rule, stores: Sequence[Store] = ()) -> None:
    """Raise BadRuleError unless the rule can fire. `stores`: the registered stores that it watches."""
    if isinstance(rule, Threshold):
        _threshold(rule)
    elif isinstance(rule, Silence):
        _silence(rule)
    else:
        _level(rule)
    only_open = rule.only_open if isinstance(rule, Threshold) else isinstance(rule, Silence) and rule.hours == "open"
    if only_open and stores and not any(store.opening_hours for store in stores):
        message = "None of its stores has opening hours, so the rule can never fire."
        raise BadRuleError("hours", message, do="Register `opening_hours`, or write `hours: always`.", fires="never")
    if only_open and stores:
        _refuse_short_hours(rule, max(map(longest_open, stores)))


def _refuse_short_hours(rule: Rule, longest: int) -> None:
    """`longest`: minutes for which any of its stores is open without a break."""
    if isinstance(rule, Silence) and rule.minutes > longest:
        message = f"`minutes` is {rule.minutes}, and none of its stores is open for longer than {longest} at a stretch."
        raise BadRuleError("minutes", message, do=f"Write {longest} or less, or `hours: always`.", fires="never")
    if isinstance(rule, Threshold) and _MINUTES_OPEN[rule.window] > longest:
        message = f"None of its stores is open for a whole `{rule.window}`."
        raise BadRuleError("window", message, do="Write a shorter one, or `hours: always`.", fires="never")


def alertable_metric(name: str) -> Metric:
    """The metric of a rule. BadRuleError with the nearest name, or why no rule can watch it."""
    known = alertable_metrics()
    if name in known:
        return known[name]
    if name in registered_metrics():
        message = f"`metric` is `{name}`, which cannot be evaluated event by event."
        raise BadRuleError("metric", message, do=f"Use one of: {', '.join(sorted(known))}.")
    unknown = UnknownNameError("metric", name, known)
    raise BadRuleError("metric", unknown.message, do=unknown.do)


def _threshold(rule: Threshold) -> None:
    metric = alertable_metric(rule.metric)
    bounds = {name: bound for name in ("above", "below") if (bound := getattr(rule, name)) is not None}
    if len(bounds) != 1:
        message = "A bound needs exactly one of `above` and `below`."
        raise BadRuleError("above", message, do="Write one of them, or two rules for both.")
    [(field, bound)] = bounds.items()
    if not bound.is_finite():
        raise BadRuleError(field, f"`{field}` is out of range.", do="Write a number in digits.")
    if bound.as_tuple().exponent < -MAX_DIGITS:
        raise BadRuleError(field, f"`{field}` has too many decimals.", do=f"Write at most {MAX_DIGITS}.")
    if rule.versus:
        _refuse_far(field, bound)
    else:
        _refuse_beyond(metric, field, bound)


def _refuse_far(field: str, bound: Decimal) -> None:
    """BadRuleError for a percentage by which no window can differ from another."""
    most = MAX_PERCENT_ABOVE if field == "above" else ALL - 1
    if not 1 <= bound <= most:
        message = f"`{field}` is {_shown(bound)} percent, and must be 1 to {most:,}."
        raise BadRuleError(field, message, do="Write how far the window may lie from the one a week before.")


def _refuse_beyond(metric: Metric, field: str, bound: Decimal) -> None:
    """BadRuleError if every window is on the same side of the bound."""
    least, most = value_range(metric)
    low = f"{least:,}" if least else "zero"
    fires: Fires
    if field == "below" and bound <= least:
        fires, do = "never", f"Write a bound above {low}."
    elif field == "above" and bound < least:
        fires, do = "always", f"Write {low} or more."
    elif field == "above" and bound >= most:
        fires, do = "never", f"Write less than {most:,}."
    elif field == "below" and bound > most:
        fires, do = "always", f"Write {most:,} or less."
    else:
        return
    holds = f"a window of one store holds {least:,} to {most:,}"
    message = f"`{metric.id}` is {fires} {field} {_shown(bound)}: {holds}."
    raise BadRuleError(field, message, do=do, fires=fires)


def _shown(bound: Decimal) -> str:
    return f"{bound:,f}" if bound.adjusted() < MAX_SHOWN_DIGITS else f"{bound:.2e}"


def _silence(rule: Silence) -> None:
    sources = registered_sources()
    if rule.source not in sources:
        unknown = UnknownNameError("source", rule.source, sources)
        raise BadRuleError("source", unknown.message, do=unknown.do)
    columns = sources[rule.source].columns
    if rule.per == "sensor" and "sensor_id" not in columns:
        message = f"Events of `{rule.source}` come from no sensor."
        raise BadRuleError("per", message, do="Write `per: store`.")
    if rule.minutes < MIN_SILENT_MINUTES:
        message = f"`minutes` is {rule.minutes}: every store is silent for that long from time to time."
        raise BadRuleError("minutes", message, do=f"Write {MIN_SILENT_MINUTES} or more.", fires="always")
    if rule.minutes > MAX_SILENT_MINUTES:
        message = f"`minutes` is {rule.minutes}, more than a day."
        raise BadRuleError("minutes", message, do=f"Write {MAX_SILENT_MINUTES} or less.", fires="never")


def _level(rule: Level) -> None:
    most = MOST_WAITING - 1 if rule.of == "queue" else MAX_PEOPLE
    if not 0 <= rule.above <= most:
        never = "is never longer" if rule.of == "queue" else "never holds more"
        why = "a level is always above it" if rule.above < 0 else f"what is counted {never}"
        fires: Fires = "always" if rule.above < 0 else "never"
        raise BadRuleError("above", f"`above` is {rule.above}: {why}.", do=f"Write 0 to {most}.", fires=fires)
    if not 0 <= rule.minutes < MAX_LEVEL_MINUTES:
        message = f"`minutes` is {rule.minutes}; a level is reset with each business day."
        raise BadRuleError("minutes", message, do=f"Write 0 to {MAX_LEVEL_MINUTES - 1}.")


_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}").fullmatch
MAX_STORES = 10_000
MAX_NAME_BYTES = 256
_PLACE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<field>[^`]*)`)?$").fullmatch
_NAMED = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<field>\w+)`").match
_FIELDS = {kind.__struct_config__.tag: kind.__struct_fields__ for kind in Rule.__args__}
KINDS = tuple(str(tag) for tag in _FIELDS)


def parse_rule(value: object, stores: Mapping[str, Store] | None = None) -> Rule:
    """Parse and validate a rule.

    Args:
        value: An object of plain values.
        stores: The registered stores, where they are known.

    Raises:
        BadRuleError: It is not a rule, or makes no sense.
    """
    try:
        rule: Rule = msgspec.convert(value, Rule, strict=False)
    except msgspec.ValidationError as error:
        raise _unreadable(str(error), value) from error
    if not _ID(rule.id):
        message = f"`id` is `{rule.id[:64]}`, which is not a valid id."
        raise BadRuleError(
            "id", message, do="Use at most 64 lower-case letters, digits, `.`, `_` and `-`, such as `queue-too-long`."
        )
    if wrong := wrong_tenant(rule.tenant):
        raise BadRuleError("tenant", f"`tenant` {wrong}.", do="Name one tenant, or leave it out.")
    if len(rule.name.encode()) > MAX_NAME_BYTES:
        raise BadRuleError("name", f"`name` is longer than {MAX_NAME_BYTES} bytes.", do="Write a shorter one.")
    if hidden := hidden_character(rule.name, "in_scripts"):
        raise BadRuleError("name", f"`name` has a character that is not visible, {hidden}.", do="Leave it out.")
    _refuse_stores(rule, stores)
    validate_rule(rule, _own(rule, stores))
    return rule


def _unreadable(error: str, value: object) -> BadRuleError:
    kind = str(value.get("kind")) if isinstance(value, dict) else ""
    named, place = _NAMED(error), _PLACE(error)
    if named and named["how"].startswith("missing"):
        field = named["field"]
        do = f"Say `kind`: {', '.join(KINDS)}." if field == "kind" else f"Add `{field}`."
        return BadRuleError(field, f"`{field}` is missing.", do=do)
    if named:
        known = _FIELDS.get(kind, ())
        near = get_close_matches(named["field"], known, n=1)
        do = f"Did you mean `{near[0]}`?" if near else f"Use one of: {', '.join(known)}."
        return BadRuleError(named["field"], f"`{named['field']}` is not a field of a rule of kind `{kind}`.", do=do)
    field = place["field"] or "" if place else ""
    if field == "kind":
        return BadRuleError("kind", f"`{kind}` is not a kind of rule.", do=f"Use one of: {', '.join(KINDS)}.")
    what = place["what"] if place else error
    if not field:
        return BadRuleError("", "A rule is an object with `id` and `kind`.", do=f"Kinds are: {', '.join(KINDS)}.")
    return BadRuleError(field, f"`{field}` cannot be read: {what}.", do="Write a value of that type.")


def _refuse_stores(rule: Rule, stores: Mapping[str, Store] | None) -> None:
    if rule.stores is None:
        return
    if not rule.stores:
        message = "`stores` is empty, so the rule can never fire."
        raise BadRuleError("stores", message, do="Name a store, leave `stores` out for all, or write `on: false`.")
    if len(rule.stores) > MAX_STORES or len(set(rule.stores)) < len(rule.stores):
        message = f"`stores` repeats a store, or names more than {MAX_STORES:,}."
        raise BadRuleError("stores", message, do="Name each store once, or leave `stores` out for all.")
    for store in rule.stores if stores is not None else ():
        found = stores.get(store) if stores else None
        if found is None or found.tenant != rule.tenant:  # a store of another tenant counts as unknown
            message = f"`stores` names `{store}`, which is not a store of the tenant `{rule.tenant}`."
            raise BadRuleError("stores", message, do="Register it with `galatea stores load FILE`, or leave it out.")


def _own(rule: Rule, stores: Mapping[str, Store] | None) -> list[Store]:
    return [each for each in (stores or {}).values() if rule.watches(each.id, each.tenant)]
