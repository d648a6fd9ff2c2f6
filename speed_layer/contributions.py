"""What one event adds to the cells of each view of its source: one array of structs in Spark SQL.

A contribution is `struct<view, window, dimensions, values>`: the window in seconds since 1970, the dimensions as text,
and the row values of the view's columns, so that views of every shape share one column.
"""

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa

from master_dataset.parsing.rows import EVENT
from master_dataset.visits.visit import VisitRules
from views.core.cells import WAITING
from views.core.view import View, dimension_sql, fresh_sql, quoted, values_sql, window_sql

CONTRIBUTIONS = pa.list_(
    pa.struct(
        [
            ("view", pa.string()),
            ("window", pa.int64()),
            ("dimensions", pa.list_(pa.string())),
            ("values", pa.list_(pa.int64())),
        ]
    )
)
ALL = "true"
"""The condition of a view that counts every row."""
_SQL_TYPE = "array<struct<view:string,window:bigint,dimensions:array<string>,values:array<bigint>>>"


def contributions_sql(views: Sequence[View], oldest: timedelta, rules: VisitRules) -> str:
    """SQL of the contributions of one parsed row of any source; NULL for a row that is not an event.

    Events older than `oldest` (A of R5) on arrival may be duplicates of events that this generation never read, so they
    are left to batch and counted as waiting. To a view of visits an event contributes itself (see `sighting_rows`), or
    waits: see `master_dataset.visits`.
    """
    of: dict[str, list[View]] = {}
    for view in views:
        of.setdefault(view.source.topic, []).append(view)
    cases = " ".join(
        f"when {quoted(topic)} then {_of_topic(own, topic, oldest, rules)}" for topic, own in sorted(of.items())
    )
    return f"if(kind = {quoted(EVENT)}, case topic {cases} end, null)"


def _of_topic(views: Sequence[View], topic: str, oldest: timedelta, rules: VisitRules) -> str:
    of_visits = [view.name for view in views if view.counts_visits]
    waiting = ", ".join(_waiting(name) for name in (topic, *of_visits))
    counted = [_sighting_sql(view.name, rules) if view.counts_visits else _view_sql(view) for view in views]
    all_counted = f"concat({', '.join(counted)})" if counted else "array()"
    age_micros = int(oldest / timedelta(microseconds=1))
    too_old = f"unix_micros(received_at) - unix_micros(happened_at) > {age_micros}L"
    return f"cast(if({too_old}, array({waiting}), {all_counted}) as {_SQL_TYPE})"


def visit_contributions_sql(view: View) -> str:
    """SQL of the contributions of one row of visits."""
    return f"cast({_view_sql(view)} as {_SQL_TYPE})"


def _waiting(name: str) -> str:
    return _struct(WAITING.name, window_sql("happened_at"), [quoted(name)], values_sql(WAITING))


def _sighting_sql(view: str, rules: VisitRules) -> str:
    """The business day replaces the window, and the device replaces a dimension."""
    values = ["unix_millis(happened_at)", "if(is_inside, 1L, 0L)"]
    sighting = _struct(view, "business_day", ["device"], values)
    return f"array(if({fresh_sql(rules)}, {sighting}, {_waiting(view)}))"


def _view_sql(view: View) -> str:
    dimensions = [dimension_sql(sql) for sql in view.dimensions.values()]
    struct = _struct(view.name, window_sql(view.at), dimensions, values_sql(view))
    if view.each is None:
        return f"array({struct})" if view.where == ALL else f"if({view.where}, array({struct}), array())"
    name, elements = view.each.name, f"coalesce({view.each.of}, array())"
    if view.where != ALL:  # a function per element is slow, so none is called for nothing
        elements = f"filter({elements}, {name} -> coalesce({view.where}, false))"
    return f"transform({elements}, {name} -> {struct})"


def _struct(view: str, window: str, dimensions: list[str], values: list[str]) -> str:
    texts = f"cast(array({', '.join(dimensions)}) as array<string>)"
    numbers = f"cast(array({', '.join(values)}) as array<bigint>)"
    return f"named_struct('view', {quoted(view)}, 'window', {window}, 'dimensions', {texts}, 'values', {numbers})"
