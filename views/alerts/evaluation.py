"""Whether a rule holds for one (store, window): the one place that says so, for whoever follows a log or audits facts.

Pure: what has happened is handed in. The relay hands in what it has folded so far, an audit everything there is.
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
"""The states of the rule's view in a window, in the order of `Followed.states`; None: no event."""
MINUTE_MS = 60_000
_DIGITS = Decimal("0.000001")


class ThresholdResult(NamedTuple):
    """`value`, `baseline`: as people read them; None: there is no such number."""

    holds: bool
    value: Decimal | None
    baseline: Decimal | None = None


def evaluate_threshold(
    rule: Threshold, shop: ShopClock, span: Span, states: Sequence[str], sums: Sums
) -> ThresholdResult:
    """Whether a metric of the window is beyond the bound. `states`: the names of what `sums` gives."""
    if rule.only_open and not shop.is_open(rule.window, span):
        return ThresholdResult(holds=False, value=None)
    metric = alertable_metrics()[rule.metric]
    value = _worth(metric, states, sums(span))
    shown = in_unit(value, metric, shop.store.currency)
    if rule.versus is None:
        return ThresholdResult(_beyond(rule, value, bound_of(rule, metric, shop.store.currency)), shown)
    before = _worth(metric, states, sums(shop.week_before(rule.window, span)))
    baseline = in_unit(before, metric, shop.store.currency)
    if before is None or before <= 0:
        return ThresholdResult(holds=False, value=shown, baseline=baseline)  # nothing to compare with
    percent = Fraction(rule.above if rule.above is not None else -(rule.below or 0))
    return ThresholdResult(_beyond(rule, value, before * (ALL + percent) / ALL), shown, baseline)


def can_fire_early(rule: Threshold) -> bool:
    """Whether it is judged while its window lasts: too much of what only adds up. All else when the window is over."""
    metric = alertable_metrics()[rule.metric]
    return rule.above is not None and rule.versus is None and metric.formula.is_sum


def bound_of(rule: Threshold, metric: Metric, currency: Currency) -> Fraction:
    """The bound as the value is counted: money in minor units."""
    bound = Fraction(rule.above if rule.above is not None else rule.below or 0)
    return bound * 10**currency.digits if metric.unit == "money" else bound


def in_unit(value: Fraction | None, metric: Metric, currency: Currency) -> Decimal | None:
    """A value as people read it: exact, or to six digits."""
    if value is None:
        return None
    if metric.unit == "money":
        value /= 10**currency.digits
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return exact if Fraction(exact) == value else exact.quantize(_DIGITS, ROUND_HALF_EVEN)


def was_silent(rule: Silence, signs_ms: Iterable[int], since_ms: int) -> bool:
    """Whether no event happened for the minutes of the rule from then on. `signs_ms`: every sign of life there is."""
    until = since_ms + rule.minutes * MINUTE_MS
    return not any(since_ms < sign < until for sign in signs_ms)


def _beyond(rule: Threshold, value: Fraction | None, bound: Fraction) -> bool:
    if value is None:
        return False
    return value > bound if rule.above is not None else value < bound


def _worth(metric: Metric, states: Sequence[str], sums: Sequence[int] | None) -> Fraction | None:
    """Of a window without events a sum is 0, and any other number is none."""
    named = dict(zip(states, sums or [0] * len(states), strict=True))
    value, _ = metric.value(named)
    return value if isinstance(value, Fraction) else None
