"""The corrected cells of a view, as blocks of one store and day, computed by Spark from the first deliveries."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from views.core.cells import WINDOW_KEY
from views.core.rows import dimension_sql, quoted, window_sql
from views.core.view import View


def cells(view: View, events: DataFrame, cut: datetime) -> DataFrame:
    """One row per cell: store, window (seconds since 1970), d0.. (dimensions), s0.. (state columns)."""
    received = events.where(F.col("received_at") < F.lit(cut))
    if view.each is not None:
        received = received.withColumn(view.each.name, F.explode(view.each.of))
    rows = received.where(view.where).select(
        "store",
        F.expr(window_sql(view.at)).alias(WINDOW_KEY),
        *(F.expr(dimension_sql(sql)).alias(f"d{place}") for place, sql in enumerate(view.dimensions.values())),
        *(F.expr(column.row_sql).alias(f"s{place}") for place, column in enumerate(view.columns.values())),
    )
    keys = ("store", WINDOW_KEY, *_dimensions(view))
    states = [F.expr(column.reduce_sql(f"s{place}")) for place, column in enumerate(view.columns.values())]
    return rows.groupBy(*keys).agg(*(state.alias(f"s{place}") for place, state in enumerate(states)))


def blocks(view: View, events: DataFrame, cut: datetime) -> DataFrame:
    """One row per store and day that has cells: store, day, block (see `views.core.cells`)."""
    columns = (WINDOW_KEY, *_dimensions(view), *(f"s{place}" for place in range(len(view.columns))))
    day = F.to_date(F.timestamp_seconds(WINDOW_KEY)).alias("day")
    gathered = (
        cells(view, events, cut)
        .groupBy("store", day)
        .agg(F.sort_array(F.collect_list(F.struct(*columns))).alias("cells"))
    )
    return gathered.select("store", "day", F.expr(_block_sql(view, columns)).alias("block"))


def _block_sql(view: View, columns: Sequence[str]) -> str:
    names = (WINDOW_KEY, *view.dimensions, *view.columns)
    fields = (f"{quoted(name)}, transform(cells, cell -> cell.{own})" for name, own in zip(names, columns, strict=True))
    return f"to_json(named_struct({', '.join(fields)}))"


def _dimensions(view: View) -> list[str]:
    return [f"d{place}" for place in range(len(view.dimensions))]
