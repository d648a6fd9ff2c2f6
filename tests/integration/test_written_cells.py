"""What Spark writes of a run, as the serving layer reads it: the cells of plain Python, and their sums by day."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from cassandra.cluster import Session
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from batch_layer.blocks import Extent, batches_for, cells_used
from batch_layer.deliveries import deliveries
from batch_layer.run import Apply, Run, RunWriter, run_schema
from batch_layer.visits import CountedRows
from deploy.cassandra import session_of
from master_dataset.compressed_blocks import unpack
from master_dataset.parsing.rows import EVENT
from master_dataset.visits.visit import RULES
from serving_layer.tables import AsyncSession, BatchTables
from tests.integration.conftest import Stack
from tests.integration.test_view_sql import CUT, EPOCH, STORE, TOPICS, of, parsed, received
from tests.support.layers import batch_cells
from tests.support.sensors import BEGIN
from views.core import States, View
from views.core.cells import CellKey, read_block
from views.core.day_cells import dimension_column, state_column
from views.core.local_time import BusinessDays

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Key = tuple[date, tuple[str | None, ...]]
"""Business day, and values of dimensions."""
DAYS = [BEGIN.date() + timedelta(days=number) for number in (-1, 0, 1)]
BUSINESS_DAYS = BusinessDays.of(STORE, ZoneInfo(STORE.timezone))


def applied(view: View, counted: CountedRows) -> Apply:
    """A writer applied in Spark's workers."""

    def apply(writer: RunWriter) -> Iterable[pa.RecordBatch]:
        rows = counted.of(view, DAYS)
        written = cells_used(view, rows, Extent(CUT, DAYS), writer, run_schema(view))
        with batches_for(view, rows):
            batches: list[pa.RecordBatch] = written.toArrow().to_batches()
        return batches

    return apply


async def written(tables: BatchTables, view: View) -> dict[CellKey, States]:
    blocks = await tables.blocks(view.name, STORE.id, "run", DAYS)
    return {key: states for block in blocks.values() for key, states in read_block(view, block)}


def by_day(view: View, cells: Mapping[CellKey, States]) -> dict[Key, States]:
    found: dict[Key, States] = {}
    for key, states in cells.items():
        at = (BUSINESS_DAYS.day_of(key.window), key.dimensions)
        found[at] = view.merge(found[at], states) if at in found else states
    return found


async def by_day_cells(tables: BatchTables, view: View) -> dict[Key, States]:
    found: dict[Key, States] = {}
    for day, named in (await tables.day_parts("run", view.name)).items():
        parts = await tables.day_cells("run", view.name, day)
        assert (set(parts), named.without) == (set(named.parts), ())
        for row in (row for part in named.parts for row in unpack(parts[part]).to_pylist()):
            dimensions = tuple(row[dimension_column(place)] for place, _ in enumerate(view.dimensions))
            states = tuple(row[state_column(place)] for place, _ in enumerate(view.columns))
            assert row["store"] == STORE.id
            at = (BUSINESS_DAYS.day_of(row["start"]), dimensions)
            assert BUSINESS_DAYS.day_of(row["end"] - 1) == at[0]
            found[at] = view.merge(found[at], states) if at in found else states
    return found


@pytest.mark.parametrize("topic", TOPICS)
def test_cells_are_those_of_plain_python_and_day_cells_what_they_add_up_to(
    spark: "SparkSession", stack: Stack, shared_cassandra: Session, topic: str
) -> None:
    address = replace(stack.settings.cassandra.address, keyspace=shared_cassandra.keyspace or "")
    connect = partial(session_of, address)  # as Spark's workers import it
    shared_cassandra.execute("INSERT INTO stores (id, body) VALUES (%s, %s)", (STORE.id, STORE.to_json()))
    events = parsed(spark, topic).where(F.col("kind") == EVENT)
    counted = CountedRows(events, deliveries(events).first, RULES, CUT)
    tables = BatchTables(AsyncSession(shared_cassandra))

    for view in of(topic):
        Run(connect, "run").write(view, set(DAYS), applied(view, counted))
        cells = asyncio.run(written(tables, view))
        assert cells == batch_cells(view, received(topic), CUT, EPOCH)
        assert asyncio.run(by_day_cells(tables, view)) == by_day(view, cells)
        assert cells
