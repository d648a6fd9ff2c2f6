"""What one event adds to the cells of every view of its source, as one array of structs in Spark SQL.

A contribution is `struct<view, window, dimensions, values>`: the window in seconds since 1970, the dimensions as
texts, and the row values of the view's columns, so that views of every shape share one column.
"""

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa

from master_dataset.parsing.rows import EVENT
from views.core.rows import dimension_sql, quoted, values_sql, window_sql
from views.core.shape import WAITING
from views.core.view import View

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
_SQL_TYPE = "array<struct<view:string,window:bigint,dimensions:array<string>,values:array<bigint>>>"


def contributions_sql(views: Sequence[View], topic: str, oldest: timedelta) -> str:
    """SQL of the contributions of one parsed row; NULL for a row that is no event.

    `oldest` is A of R5: what was older on arrival may repeat what this generation never read, so batch decides.
    """
    waiting = _struct(WAITING.name, window_sql("happened_at"), [quoted(topic)], values_sql(WAITING))
    counted = f"concat({', '.join(_view_sql(view) for view in views)})" if views else "array()"
    age_micros = int(oldest / timedelta(microseconds=1))
    too_old = f"unix_micros(received_at) - unix_micros(happened_at) > {age_micros}L"
    by_age = f"case when kind <> {quoted(EVENT)} then null when {too_old} then array({waiting}) else {counted} end"
    return f"cast({by_age} as {_SQL_TYPE})"


def _view_sql(view: View) -> str:
    dimensions = [dimension_sql(sql) for sql in view.dimensions.values()]
    struct = _struct(view.name, window_sql(view.at), dimensions, values_sql(view))
    kept = f"coalesce({view.where}, false)"
    if view.each is None:
        return f"filter(array({struct}), kept -> {kept})"
    name, elements = view.each.name, f"coalesce({view.each.of}, array())"
    return f"transform(filter({elements}, {name} -> {kept}), {name} -> {struct})"


def _struct(view: str, window: str, dimensions: list[str], values: list[str]) -> str:
    texts = f"cast(array({', '.join(dimensions)}) as array<string>)"
    numbers = f"cast(array({', '.join(values)}) as array<bigint>)"
    return f"named_struct('view', {quoted(view)}, 'window', {window}, 'dimensions', {texts}, 'values', {numbers})"
