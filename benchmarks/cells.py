"""Rows of cells a second into Cassandra, as batch and as speed write them, beside bare `execute_concurrent`.

The bare loop binds and sends one statement per row: the same columns and bytes, made before the clock starts, into a
table of the same form. What ours does more is inside its time: it makes blocks of cells (speed), knows which rows lie
together (batch), and names what it has written.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from cassandra.concurrent import execute_concurrent

from batch_layer.blocks import made_schema
from batch_layer.run import BlockWriter
from benchmarks import local
from benchmarks.report import Measured
from speed_layer.additions import AdditionKey, Cells
from speed_layer.contributions import shapes_of
from speed_layer.micro_batch import SpeedRows
from views import registered_views
from views.control.speed_layout import SpeedLayout
from views.core import View
from views.core.cells import CellKey, write_block
from views.core.cut import month_of

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

FULL = 30_000
ROUNDS = 3
STORES, WINDOWS = 100, 56  # windows of 14 opening hours
CELLS_OF_A_MINUTE = 8  # cells of one store and view in a micro-batch
IN_FLIGHT = 32
TTL, EPOCH = timedelta(days=7), timedelta(minutes=5)
FIRST_DAY = date(2026, 1, 1)
BATCH = (
    "CREATE TABLE IF NOT EXISTS bench_blocks (view_name text, store text, month date, run text, day date, block text, "
    "PRIMARY KEY ((view_name, store, month), run, day))"
)
INSERT_BATCH = "INSERT INTO bench_blocks (view_name, store, month, run, day, block) VALUES (?, ?, ?, ?, ?, ?)"
SPEED = (
    "CREATE TABLE IF NOT EXISTS bench_additions (view_name text, store text, received_day date, generation bigint, "
    "epoch timestamp, micro_batch bigint, part int, block text, "
    "PRIMARY KEY ((store, received_day, generation), view_name, epoch, micro_batch, part)) WITH compaction = "
    "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 1}"
)
INSERT_SPEED = (
    "INSERT INTO bench_additions (view_name, store, received_day, generation, epoch, micro_batch, part, block) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)
Row = tuple[object, ...]
Placed = tuple[AdditionKey, Cells]


def cells(size: int) -> Iterator[Measured]:
    """`size` rows of each kind, in turns with the bare loop; the best round of each counts."""
    with local.own_home() as settings, local.running(settings, "cassandra"):
        yield _batch(settings, local.cassandra(settings), size)
        yield _speed(local.cassandra(settings), size)


def _batch(settings: "Settings", session: "Session", size: int) -> Measured:
    view = next(view for view in registered_views() if view.name == "sales")
    blocks = _blocks(view, size // ROUNDS)
    rows = pa.Table.from_pylist(blocks, schema=made_schema(view)).to_batches(max_chunksize=2_000)
    ours, beside = [], []
    for number in range(ROUNDS):
        write = BlockWriter(local.connecting(settings), view.name, f"bench-{number}")
        ours.append(_rate(len(blocks), partial(_drained, write, rows)))
        values = [
            (view.name, row["store"], month_of(row["day"]), f"bench-{number}", row["day"], row["block"])
            for row in blocks
        ]
        beside.append(_bare(session, BATCH, INSERT_BATCH, values))
    details = {"rows": len(blocks) * ROUNDS, "bytes_per_row": sum(len(row["block"]) for row in blocks) // len(blocks)}
    return Measured("cells, batch blocks", max(ours), max(beside), "rows/s", "bare execute_concurrent", details=details)


def _drained(write: BlockWriter, rows: Sequence[pa.RecordBatch]) -> None:
    for _ in write(iter(rows)):
        pass


def _blocks(view: View, count: int) -> list[dict[str, Any]]:
    """A block of a trading day for each store and day, the days of a store in a row, as Spark's workers have them."""
    rng = random.Random(11)  # noqa: S311 - no secret
    days = -(-count // STORES)
    return [
        {"store": str(store), "day": (day := FIRST_DAY + timedelta(days=number)), "block": _day(rng, view, day)}
        for store in range(1, STORES + 1)
        for number in range(days)
    ][:count]


def _day(rng: random.Random, view: View, day: date) -> str:
    opens = int(datetime(day.year, day.month, day.day, 7, tzinfo=UTC).timestamp())
    return write_block(view, _cells(rng, view, [opens + 900 * number for number in range(WINDOWS)]))


def _cells(rng: random.Random, view: View, windows: Sequence[int]) -> Cells:
    texts = ("EUR", "8580001", "8580002")[: len(view.dimensions)]
    return [(CellKey(window, texts), tuple(rng.randint(0, 50_000) for _ in view.columns)) for window in windows]


def _speed(session: "Session", size: int) -> Measured:
    views = [view for view in registered_views() if not view.counts_visits]  # the driver writes visits
    shapes = shapes_of(views)
    placed = _placed(views, size // ROUNDS)
    ours, beside = [], []
    for number in range(ROUNDS):
        rows = SpeedRows(session, number + 1, SpeedLayout.for_stores(STORES), TTL, shapes)
        ours.append(_rate(len(placed), partial(rows.write, 0, placed)))
        values = [_row(number + 1, key, write_block(shapes[key.shape], own)) for key, own in placed]
        beside.append(_bare(session, SPEED, INSERT_SPEED, values))
    length = sum(len(write_block(shapes[key.shape], own)) for key, own in placed) // len(placed)
    details = {"rows": len(placed) * ROUNDS, "bytes_per_row": length, "cells_per_row": CELLS_OF_A_MINUTE}
    return Measured("cells, speed rows", max(ours), max(beside), "rows/s", "bare execute_concurrent", details=details)


def _placed(views: Sequence[View], count: int) -> list[Placed]:
    """What micro-batches add: to every view and store, epoch after epoch."""
    rng = random.Random(12)  # noqa: S311 - no secret
    began = datetime(2026, 1, 1, 9, tzinfo=UTC)
    windows = [int(began.timestamp())] * CELLS_OF_A_MINUTE
    found = []
    for number in range(count):
        turn, place = divmod(number, len(views) * STORES)
        view, store = views[place % len(views)], str(place // len(views))
        found.append((AdditionKey(view.name, store, began + EPOCH * turn), _cells(rng, view, windows)))
    return found


def _row(generation: int, key: AdditionKey, block: str) -> Row:
    micros = int(key.epoch.timestamp()) * 1_000_000
    place = (key.shape, key.store, key.epoch.date(), generation, key.epoch)
    return (*place, 0, 0, block, micros, int(TTL.total_seconds()))


def _bare(session: "Session", table: str, insert: str, values: Sequence[Row]) -> float:
    session.execute(table)
    prepared = session.prepare(insert)
    return _rate(len(values), lambda: execute_concurrent(session, [(prepared, each) for each in values], IN_FLIGHT))


def _rate(count: int, work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return count / (time.monotonic() - began)
