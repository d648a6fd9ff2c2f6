"""What one event adds to the cells of every view of its source, as one array of structs in Spark SQL.

A contribution is `struct<view, store, window, dimensions, sums, mins, maxs>`: the window in seconds since 1970, the
dimensions as texts, the row values of the view's columns by reducer, so that one grouped aggregation serves all views.
"""

from collections.abc import Sequence
from datetime import timedelta

from views.core.cells import WAITING
from views.core.rows import dimension_sql, quoted, values_sql, window_sql
from views.core.view import View

SCHEMA = (
    "array<struct<view:string,store:string,window:bigint,dimensions:array<string>,"
    "sums:array<bigint>,mins:array<bigint>,maxs:array<bigint>>>"
)
POSITION = "position"
"""The pseudo-view of how far a partition was read: maxs are the last offset and its receipt in microseconds."""


def contributions_sql(views: Sequence[View], topic: str, oldest: timedelta) -> str:
    """SQL of the contributions of one parsed row. Rows of kind `position` say how far reading has come.

    `oldest` is A of R5: an event that was older on arrival may be a forgotten duplicate, so batch decides about it.
    """
    waiting = _struct(WAITING, "store", window_sql("happened_at"), [quoted(topic)], ["1L"], [], [])
    position = _struct(POSITION, "topic", "0L", ["cast(partition as string)"], [], [], _reached())
    counted = f"concat({', '.join(_view_sql(view) for view in views)})" if views else "array()"
    age_micros = int(oldest / timedelta(microseconds=1))
    too_old = f"unix_micros(received_at) - unix_micros(happened_at) > {age_micros}L"
    return (
        f"cast(case when kind = '{POSITION}' then array({position}) "
        f"when {too_old} then array({waiting}) else {counted} end as {SCHEMA})"
    )


def _reached() -> list[str]:
    return ["offset", "unix_micros(received_at)"]


def _view_sql(view: View) -> str:
    dimensions = [dimension_sql(sql) for sql in view.dimensions.values()]
    by = {reducer: values_sql(view, reducer) for reducer in ("sum", "min", "max")}
    struct = _struct(view.name, "store", window_sql(view.at), dimensions, by["sum"], by["min"], by["max"])
    kept = f"coalesce({view.where}, false)"
    if view.each is None:
        return f"filter(array({struct}), kept -> {kept})"
    name, elements = view.each.name, f"coalesce({view.each.of}, array())"
    return f"transform(filter({elements}, {name} -> {kept}), {name} -> {struct})"


def _struct(  # noqa: PLR0913, PLR0917 - one argument per field
    view: str, store: str, window: str, dimensions: list[str], sums: list[str], mins: list[str], maxs: list[str]
) -> str:
    lists = {"sums": sums, "mins": mins, "maxs": maxs}
    arrays = ", ".join(f"'{name}', cast(array({', '.join(sql)}) as array<bigint>)" for name, sql in lists.items())
    texts = f"cast(array({', '.join(dimensions)}) as array<string>)"
    return (
        f"named_struct('view', {quoted(view)}, 'store', {store}, 'window', {window}, 'dimensions', {texts}, {arrays})"
    )
