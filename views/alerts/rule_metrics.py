"""The metrics that rules can watch: those that can be computed event by event, and the range of their values.

A view qualifies if each of its rows is an event, in the window in which it happened, and the states that matter are a
column of the source, the number of rows, or the number of rows with a column that is true or equals a text. This is
derived from the row expressions of the view, so that there is no second definition.
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
"""The cells of each of these views are kept for ten days, whether a rule needs them or not."""
_UNITS = ("n", "money", "percent", "ratio", "ms")
Contribution = Callable[[Any], int]
"""What a payload adds to a state."""


@dataclass(frozen=True)
class AlertableView:
    """The states of a view that can be computed event by event: each is a sum over its events."""

    view: View
    adds: Mapping[str, Contribution]

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states."""
        return tuple(self.adds)

    def contribution(self, payload: object) -> list[int]:
        """What an event adds to each of the states."""
        return [add(payload) for add in self.adds.values()]


@cache
def alertable_views(topic: str) -> tuple[AlertableView, ...]:
    """The views of a source that qualify, by name."""
    own = [view for view in registered_views() if view.source.topic == topic]
    found = [AlertableView(view, _adds(view)) for view in own if _is_plain(view)]
    return tuple(each for each in found if each.adds)


@cache
def alertable_metrics() -> Mapping[str, Metric]:
    """Metrics by id, and numbers of events as `view.state` (`sales.zero_tx`)."""
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
                id_ = f"{name}.{state}"
                found[id_] = Metric(id_, id_, Formula(state), "n", name)
    return found


def source_topic(rule: Rule) -> str | None:
    """The topic whose events a rule needs; None if this release does not have its metric or source."""
    if isinstance(rule, Threshold):
        metric = alertable_metrics().get(rule.metric)
        return view_named(metric.view).source.topic if metric else None
    source = rule.source if isinstance(rule, Silence) else LEVEL_SOURCES[rule.of]
    return source if source in registered_sources() else None


def _is_plain(view: View) -> bool:
    is_own_row = view.each is None and view.at == "happened_at" and not view.counts_visits
    return view.name in ALERTABLE_VIEWS and is_own_row and view.where == "true"


def _adds(view: View) -> dict[str, Contribution]:
    found = {name: _contribution(column, view.source.columns) for name, column in view.columns.items()}
    return {name: add for name, add in found.items() if add is not None}


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
"""By unit, as people read it; money in the main unit of any currency. Far beyond any store and window."""
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
"""Metrics that may be negative: returns, discounts, and cameras that miss people."""


class ValueRange(NamedTuple):
    """The least and the greatest value that one window of one store can have."""

    least: int
    most: int


def value_range(metric: Metric) -> ValueRange:
    """The range of a metric that rules can watch, in display units. A share is at most 100 %."""
    if metric.unit == "percent" and "above_100" not in metric.flags:
        return ValueRange(0, ALL)
    most = _MOST[metric.unit]
    return ValueRange(-most if metric.id in _SIGNED else 0, most)
