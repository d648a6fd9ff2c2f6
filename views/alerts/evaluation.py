"""Whether a rule holds for a window of a store. The speed layer and the audit both use this.

Pure: the facts are arguments. The speed layer passes what it has aggregated so far, the audit all events.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import NamedTuple

from master_dataset.registry.stores import Currency
from views.alerts.rule import Silence, Threshold
from views.alerts.rule_metrics import alertable_metrics
from views.alerts.shop_clock import ShopClock
from views.core.local_time import Span
from views.core.metric import ALL, Metric

Sums = Callable[[Span], Sequence[int] | None]
"""The states of the rule's view in a window, in the order of `AlertableView.states`; None without an event."""
MINUTE_MS = 60_000
_DIGITS = Decimal("0.000001")


class ThresholdResult(NamedTuple):
    """`value`, `baseline`: in display units; None if there is no such number."""

    holds: bool
    value: Decimal | None
    baseline: Decimal | None = None


def evaluate_threshold(
    rule: Threshold, shop: ShopClock, span: Span, states: Sequence[str], sums: Sums
) -> ThresholdResult:
    """Whether the metric of the window is beyond the bound.

    Args:
        rule: The rule.
        shop: The store.
        span: The window.
        states: The names of the states that `sums` returns.
        sums: Returns the states of a window.
    """
    if rule.only_open and not shop.is_open(rule.window, span):
        return ThresholdResult(holds=False, value=None)
    metric = alertable_metrics()[rule.metric]
    value = _metric_value(metric, states, sums(span))
    shown = in_unit(value, metric, shop.store.currency)
    if rule.versus is None:
        return ThresholdResult(_is_beyond(rule, value, bound_of(rule, metric, shop.store.currency)), shown)
    before = _metric_value(metric, states, sums(shop.week_before(rule.window, span)))
    baseline = in_unit(before, metric, shop.store.currency)
    if before is None or before <= 0:
        return ThresholdResult(holds=False, value=shown, baseline=baseline)  # nothing to compare with
    percent = Fraction(rule.above if rule.above is not None else -(rule.below or 0))
    return ThresholdResult(_is_beyond(rule, value, before * (ALL + percent) / ALL), shown, baseline)


def can_fire_early(rule: Threshold) -> bool:
    """Whether the rule is evaluated before its window ends: true for an upper bound on a sum."""
    metric = alertable_metrics()[rule.metric]
    return rule.above is not None and rule.versus is None and metric.formula.is_sum


def bound_of(rule: Threshold, metric: Metric, currency: Currency) -> Fraction:
    """The bound in the unit of the states: money in minor units."""
    bound = Fraction(rule.above if rule.above is not None else rule.below or 0)
    return bound * 10**currency.digits if metric.unit == "money" else bound


def in_unit(value: Fraction | None, metric: Metric, currency: Currency) -> Decimal | None:
    """A value in display units: exact, or rounded to six digits."""
    if value is None:
        return None
    if metric.unit == "money":
        value /= 10**currency.digits
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return exact if Fraction(exact) == value else exact.quantize(_DIGITS, ROUND_HALF_EVEN)


def was_silent(rule: Silence, signs_ms: Iterable[int], since_ms: int) -> bool:
    """Whether there was no sign of life during the minutes of the rule. `signs_ms`: all signs of life."""
    until = since_ms + rule.minutes * MINUTE_MS
    return not any(since_ms < sign < until for sign in signs_ms)


def _is_beyond(rule: Threshold, value: Fraction | None, bound: Fraction) -> bool:
    if value is None:
        return False
    return value > bound if rule.above is not None else value < bound


def _metric_value(metric: Metric, states: Sequence[str], sums: Sequence[int] | None) -> Fraction | None:
    """In a window without events, a sum is 0, and any other metric has no value."""
    named = dict(zip(states, sums or [0] * len(states), strict=True))
    value, _ = metric.value(named)
    return value if isinstance(value, Fraction) else None
