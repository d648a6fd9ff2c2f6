"""Refuses rules that can never fire, or would always: a bound that nothing reaches, a silence that is ordinary."""

from collections.abc import Sequence
from decimal import Decimal

from master_dataset.errors import BadRule, Fires, UnknownName
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from master_dataset.sources.queue_events import MOST_WAITING
from views.alerts.followed import followed_metrics
from views.alerts.open_stretch import longest_open
from views.alerts.reach import reach_of
from views.alerts.rule import Level, Rule, Silence, Threshold
from views.core.metric import ALL, Metric
from views.metrics import registered_metrics

MOST_DIGITS = 6
"""Behind the decimal point."""
MOST_SHOWN = 18
"""Digits before it that a refusal repeats."""
MOST_PEOPLE = 100_000
MOST_PERCENT_ABOVE = 10_000
MOST_SILENT = MOST_LASTING = 24 * 60
LEAST_SILENT = 2
_LASTS = {"15m": 15, "hour": 60, "day": 1}
"""Minutes that a shop has to be open for such a window to count."""


def refuse_senseless(rule: Rule, stores: Sequence[Store] = ()) -> None:
    """BadRule. `stores`: those that it watches, as far as they are registered."""
    if isinstance(rule, Threshold):
        _threshold(rule)
    elif isinstance(rule, Silence):
        _silence(rule)
    else:
        _level(rule)
    only_open = rule.only_open if isinstance(rule, Threshold) else isinstance(rule, Silence) and rule.hours == "open"
    if only_open and stores and not any(store.opening_hours for store in stores):
        message = "None of its stores says when it is open, so the rule can never fire."
        raise BadRule("hours", message, do="Register `opening_hours`, or write `hours: always`.", fires="never")
    if only_open and stores:
        _refuse_short_hours(rule, max(map(longest_open, stores)))


def _refuse_short_hours(rule: Rule, longest: int) -> None:
    """`longest`: minutes that any of its stores is open at a stretch."""
    if isinstance(rule, Silence) and rule.minutes > longest:
        message = f"`minutes` is {rule.minutes}, and none of its stores is open for longer than {longest} at a stretch."
        raise BadRule("minutes", message, do=f"Write {longest} or less, or `hours: always`.", fires="never")
    if isinstance(rule, Threshold) and _LASTS[rule.window] > longest:
        message = f"None of its stores is open for a whole `{rule.window}`."
        raise BadRule("window", message, do="Write a shorter one, or `hours: always`.", fires="never")


def metric_named(name: str) -> Metric:
    """The metric that a rule is about. BadRule with the nearest name, or why it cannot be followed."""
    known = followed_metrics()
    if name in known:
        return known[name]
    if name in registered_metrics():
        message = f"`metric` is `{name}`, which cannot be followed event by event."
        raise BadRule("metric", message, do=f"There is: {', '.join(sorted(known))}.")
    unknown = UnknownName("metric", name, known)
    raise BadRule("metric", unknown.message, do=unknown.do)


def _threshold(rule: Threshold) -> None:
    metric = metric_named(rule.metric)
    bounds = {name: bound for name in ("above", "below") if (bound := getattr(rule, name)) is not None}
    if len(bounds) != 1:
        message = "A bound needs just one of `above` and `below`."
        raise BadRule("above", message, do="Write one of them; two rules for both.")
    [(field, bound)] = bounds.items()
    if not bound.is_finite():
        raise BadRule(field, f"`{field}` is out of range.", do="Write a number in digits.")
    if bound.as_tuple().exponent < -MOST_DIGITS:
        raise BadRule(field, f"`{field}` has too many decimals.", do=f"Write at most {MOST_DIGITS}.")
    if rule.versus:
        _refuse_far(field, bound)
    else:
        _refuse_beyond(metric, field, bound)


def _refuse_far(field: str, bound: Decimal) -> None:
    """BadRule for percent that no window lies above or below another."""
    most = MOST_PERCENT_ABOVE if field == "above" else ALL - 1
    if not 1 <= bound <= most:
        message = f"`{field}` is {_shown(bound)} percent, and must be 1 to {most:,}."
        raise BadRule(field, message, do="Write how far the window may lie from the one a week before.")


def _refuse_beyond(metric: Metric, field: str, bound: Decimal) -> None:
    """BadRule where every window is on one side of the bound."""
    least, most = reach_of(metric)
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
    raise BadRule(field, message, do=do, fires=fires)


def _shown(bound: Decimal) -> str:
    return f"{bound:,f}" if bound.adjusted() < MOST_SHOWN else f"{bound:.2e}"


def _silence(rule: Silence) -> None:
    sources = registered_sources()
    if rule.source not in sources:
        unknown = UnknownName("source", rule.source, sources)
        raise BadRule("source", unknown.message, do=unknown.do)
    columns = sources[rule.source].columns
    if rule.per == "sensor" and "sensor_id" not in columns:
        message = f"Events of `{rule.source}` come from no sensor."
        raise BadRule("per", message, do="Write `per: store`.")
    if rule.minutes < LEAST_SILENT:
        message = f"`minutes` is {rule.minutes}: every shop is silent for that long, again and again."
        raise BadRule("minutes", message, do=f"Write {LEAST_SILENT} or more.", fires="always")
    if rule.minutes > MOST_SILENT:
        message = f"`minutes` is {rule.minutes}, more than a day."
        raise BadRule("minutes", message, do=f"Write {MOST_SILENT} or less.", fires="never")


def _level(rule: Level) -> None:
    most = MOST_WAITING - 1 if rule.of == "queue" else MOST_PEOPLE
    if not 0 <= rule.above <= most:
        never = "is never longer" if rule.of == "queue" else "never holds more"
        why = "a level is always above it" if rule.above < 0 else f"what is counted {never}"
        fires: Fires = "always" if rule.above < 0 else "never"
        raise BadRule("above", f"`above` is {rule.above}: {why}.", do=f"Write 0 to {most}.", fires=fires)
    if not 0 <= rule.minutes < MOST_LASTING:
        message = f"`minutes` is {rule.minutes}; a level begins anew with each business day."
        raise BadRule("minutes", message, do=f"Write 0 to {MOST_LASTING - 1}.")
