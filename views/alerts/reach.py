"""The least and the most that one window of one store can hold, so that a bound beyond it is known for a slip."""

from types import MappingProxyType
from typing import NamedTuple

from views.core.metric import ALL, Metric, Unit

_MOST = MappingProxyType[Unit, int](
    {
        "n": 100_000_000,  # receipts and people of a hypermarket's day are some 10^5, its pieces 10^6
        "money": 500_000_000_000,  # such a day is some 10^10 in dong or rupiah, and 10^11 in rials
        "ratio": 1_000_000,  # pieces of a receipt: one line holds no more
        "percent": 100_000,  # a quarter of an hour that sold one thing, and took back another a thousand times as dear
        "ms": 2 * 24 * 3_600_000,  # two days: business days of 25 hours fit in
    }
)
"""By unit, as people read it; money in the main unit of any currency. Well beyond every shop, whatever the window."""
_SIGNED = (
    "net_sales",
    "net_items_count",
    "count_drift",
    "gross_sales",
    "avg_transaction_value",
    "avg_items_per_transaction",
    "returns_value",
    "return_rate",
)
"""Metrics that may be below zero: returns, discounts, and cameras that miss somebody."""


class Reach(NamedTuple):
    """The ends of what a window can hold; both belong to it."""

    least: int
    most: int


def reach_of(metric: Metric) -> Reach:
    """Of a metric that can be followed, in the unit that people read. A share has none above the whole."""
    if metric.unit == "percent" and "above_100" not in metric.flags:
        return Reach(0, ALL)
    most = _MOST[metric.unit]
    return Reach(-most if metric.id in _SIGNED else 0, most)
