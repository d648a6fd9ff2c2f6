"""Which metrics can be followed event by event, without an engine, from the very views that say them.

A view is followed if its rows are its events, in the window in which they happened, and every state that matters is a
column of the source, the number of rows, or how many rows have a column true or equal to a text. That is read from the
row expressions of the view, which stay the only place that says them.

The least and the most that one window of one store can hold, so that a bound beyond it is known for a slip.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from master_dataset.sources import registered_sources
from views.alerts.rule import LEVEL_SOURCES, Rule, Silence, Threshold
from views.core.aggregates import Column, Count
from views.core.formula import Formula
from views.core.metric import ALL, Metric, Unit
from views.core.view import View
from views.metrics import registered_metrics
from views.registry import registered_views, view_named

_COUNTED = re.compile(r"if\((?P<where>.*), 1L, 0L\)").fullmatch
_EQUALS = re.compile(r"(?P<column>\w+) = '(?P<text>[\w-]*)'").fullmatch
ALERTABLE_VIEWS = ("sales", "traffic")
"""Views whose cells are followed; every further one has to be kept for ten days, whether a rule asks or not."""
_UNITS = ("n", "money", "percent", "ratio", "ms")
Contribution = Callable[[Any], int]
"""What a payload adds to a state."""


@dataclass(frozen=True)
class AlertableView:
    """The states of a view that can be followed, in the order of `states`; each is a sum over its events."""

    view: View
    adds: Mapping[str, Contribution]

    @property
    def states(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.adds)

    def contribution(self, payload: object) -> list[int]:
        """What an event adds to each of the states."""
        return [add(payload) for add in self.adds.values()]


@cache
def alertable_views(topic: str) -> tuple[AlertableView, ...]:
    """Those of a source, by name."""
    own = [view for view in registered_views() if view.source.topic == topic]
    found = [AlertableView(view, _adds(view)) for view in own if _is_plain(view)]
    return tuple(each for each in found if each.adds)


@cache
def alertable_metrics() -> Mapping[str, Metric]:
    """Metrics by id, and numbers of events as `view.state` (`sales.zero_tx`), that a rule may be about."""
    found: dict[str, Metric] = {}
    states = {each.view.name: each for view in registered_views() for each in alertable_views(view.source.topic)}
    for metric in registered_metrics().values():
        own = states.get(metric.view)
        if own and metric.unit in _UNITS and not (metric.only or metric.facts or metric.is_open_only):
            plain = all(term.text in own.adds and not term.view for term in metric.terms.values())
            if plain and len(metric.views) == 1:
                found[metric.id] = metric
    for name, own in states.items():
        for state, aggregate in own.view.metrics.items():
            if state in own.adds and isinstance(aggregate, Count):
                said = f"{name}.{state}"
                found[said] = Metric(said, said, Formula(state), "n", name)
    return found


def source_topic(rule: Rule) -> str | None:
    """The topic whose events a rule is about; None: its metric or source is not there in this release."""
    if isinstance(rule, Threshold):
        metric = alertable_metrics().get(rule.metric)
        return view_named(metric.view).source.topic if metric else None
    source = rule.source if isinstance(rule, Silence) else LEVEL_SOURCES[rule.of]
    return source if source in registered_sources() else None


def _is_plain(view: View) -> bool:
    is_own_row = view.each is None and view.at == "happened_at" and not view.counts_visits
    return view.name in ALERTABLE_VIEWS and is_own_row and view.where == "true"


def _adds(view: View) -> dict[str, Contribution]:
    read = {name: _contribution(column, view.source.columns) for name, column in view.columns.items()}
    return {name: add for name, add in read.items() if add is not None}


def _contribution(column: Column, known: tuple[str, ...]) -> Contribution | None:
    if column.by != "sum":
        return None
    if column.of in known:
        return lambda payload, name=column.of: int(getattr(payload, name) or 0)  # type: ignore[misc]
    counted = _COUNTED(column.of)
    where = counted["where"] if counted else ""
    if where == "true":
        return lambda _: 1
    if where in known:
        return lambda payload: int(bool(getattr(payload, where)))
    equals = _EQUALS(where)
    if equals and equals["column"] in known:
        return lambda payload: int(getattr(payload, equals["column"]) == equals["text"])
    return None


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


class ValueRange(NamedTuple):
    """The ends of what a window can hold; both belong to it."""

    least: int
    most: int


def value_range(metric: Metric) -> ValueRange:
    """Of a metric that can be followed, in the unit that people read. A share has none above the whole."""
    if metric.unit == "percent" and "above_100" not in metric.flags:
        return ValueRange(0, ALL)
    most = _MOST[metric.unit]
    return ValueRange(-most if metric.id in _SIGNED else 0, most)
