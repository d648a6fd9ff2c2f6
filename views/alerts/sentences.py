"""Rules and alerts as sentences: the same words in lists, previews, alerts and corrections."""

from decimal import Decimal

from views.alerts.evaluation import ThresholdResult
from views.alerts.rule import Level, Rule, Silence, Threshold
from views.alerts.rule_metrics import alertable_metrics
from views.alerts.shop_clock import ShopClock

_WINDOWS = {"15m": "a quarter of an hour", "hour": "an hour", "day": "a business day"}


def describe_rule(rule: Rule) -> str:
    """When the rule alerts, and for which stores."""
    if isinstance(rule, Threshold):
        when = _threshold(rule)
    elif isinstance(rule, Silence):
        who = "a sensor of" if rule.per == "sensor" else "the source"
        when = f"{who} {rule.source} is silent for {_minutes(rule.minutes)}"
    else:
        when = _level(rule)
    only_open = rule.only_open if isinstance(rule, Threshold) else isinstance(rule, Silence) and rule.hours == "open"
    where = "in every store" if rule.stores is None else f"in {_listed(rule.stores)}"
    return f"Alerts when {when}, {where}{', in opening hours' if only_open else ''}."


def _threshold(rule: Threshold) -> str:
    metric = alertable_metrics().get(rule.metric)
    name = metric.name if metric else rule.metric  # of a former release
    side, bound = ("above", rule.above) if rule.above is not None else ("below", rule.below)
    if rule.versus:
        return f"{name} of {_WINDOWS[rule.window]} is more than {_plain(bound)} % {side} the same time a week before"
    return f"{name} of {_WINDOWS[rule.window]} is {side} {_plain(bound)}"


def _level(rule: Level) -> str:
    what = f"a queue is longer than {rule.above}" if rule.of == "queue" else f"more than {rule.above} people are inside"
    return f"{what} for {_minutes(rule.minutes)}" if rule.minutes else what


def _minutes(number: int) -> str:
    return "1 minute" if number == 1 else f"{number} minutes"


def _listed(stores: tuple[str, ...], shown: int = 5) -> str:
    more = len(stores) - shown
    return ", ".join(stores[:shown]) + (f" and {more} more stores" if more > 0 else "")


def _plain(bound: Decimal | None) -> str:
    return f"{bound:f}" if bound is not None else ""


def stated_bound(rule: Threshold) -> Decimal:
    """The bound as it was written."""
    return rule.above if rule.above is not None else rule.below or Decimal(0)


def alert_sentence(rule: Threshold, shop: ShopClock, verdict: ThresholdResult) -> str:
    """Which value is beyond the bound."""
    side, bound = ("above", rule.above) if rule.above is not None else ("below", rule.below)
    shown = f"{alertable_metrics()[rule.metric].name} of store {shop.store.id}: {verdict.value}"
    if rule.versus:
        return f"{shown}, more than {bound} % {side} the {verdict.baseline} of the same time a week before."
    return f"{shown}, {side} {bound}."


def withdrawal_sentence(rule: Threshold, shop: ShopClock, verdict: ThresholdResult) -> str:
    """Which value is no longer beyond the bound."""
    name = alertable_metrics()[rule.metric].name
    if not rule.versus:
        return f"{name} of store {shop.store.id} is now {verdict.value}, and not beyond the bound."
    compared = f"compared with {verdict.baseline} a week before"
    return f"{name} of store {shop.store.id} is now {verdict.value}, {compared}, and not beyond the bound."
