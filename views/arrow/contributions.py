"""What events contribute to the cells of a view: the view's SQL over columns of events, one row per contribution."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from views.arrow.expressions import Rows, compiled, evaluate, is_true
from views.core.cells import WINDOW_KEY
from views.core.view import View, dimension_sql, values_sql, window_sql

EVENT_ROW = "event"
"""The column with the number of the row that contributes."""
ALL = "true"
"""The condition of a view that counts every row."""
EVENTS_AT_ONCE = 10_000
"""Each has about forty contributions, of some hundred bytes each."""


def contributions(view: View, events: Rows) -> pa.Table:
    """What rows contribute to a view.

    Args:
        view: The view.
        events: Events of the view's source, or visits if it counts them.

    Returns:
        A row per contribution: `event`, the number of its row; `window`, in seconds since 1970; d0.. the dimensions as
        text; s0.. what it adds to each state column.
    """
    rows, numbers = _exploded(view, events) if view.each is not None else _numbered(events)
    if view.where != ALL:
        mask = is_true(view.where, rows)
        rows, numbers = rows.where(mask), numbers.filter(mask)
    columns = {EVENT_ROW: numbers, WINDOW_KEY: evaluate(window_sql(view.at), rows)}
    columns |= {f"d{at}": evaluate(dimension_sql(sql), rows) for at, sql in enumerate(view.dimensions.values())}
    columns |= {f"s{at}": evaluate(sql, rows) for at, sql in enumerate(values_sql(view))}
    return pa.table(columns)


def whole_stores(events: pa.Table) -> Iterator[pa.Table]:
    """The events sorted by `store`, in portions of at least `EVENTS_AT_ONCE`; the last one may be smaller.

    Computing one portion at a time bounds the memory of a process. No store is in two portions, so one with more events
    is a portion by itself, or with smaller stores before it.
    """
    order = pc.sort_indices(events["store"])
    start = end = 0
    for store in pc.value_counts(events["store"].take(order)).to_pylist():
        end += store["counts"]
        if end - start >= EVENTS_AT_ONCE:
            yield events.take(order.slice(start, end - start))
            start = end
    if end > start:
        yield events.take(order.slice(start))


def check(views: Iterable[View]) -> None:
    """Refuse views whose expressions cannot be evaluated. DefinitionError names the expression."""
    for view in views:
        elements = [view.each.of] if view.each is not None else []
        dimensions = map(dimension_sql, view.dimensions.values())
        for expression in (*elements, view.where, window_sql(view.at), *dimensions, *values_sql(view)):
            compiled(expression)


def windows(view: View, events: Rows) -> pa.Table:
    """`event` and `window` of each event, also of those that do not count; if the view is spread, of what counts."""
    if view.is_spread:
        return contributions(view, events).select([EVENT_ROW, WINDOW_KEY])
    rows, numbers = _numbered(events)
    return pa.table({EVENT_ROW: numbers, WINDOW_KEY: evaluate(window_sql(view.at), rows)})


def _numbered(events: Rows) -> tuple[Rows, pa.Array]:
    return events, pa.array(range(events.number), pa.int64())


def _exploded(view: View, events: Rows) -> tuple[Rows, pa.Array]:
    """A row for each element that the view counts, and the number of its event."""
    assert view.each is not None  # noqa: S101 - for the type checker
    elements = events.elements(view.each.name, evaluate(view.each.of, events))
    return elements, elements.parents
