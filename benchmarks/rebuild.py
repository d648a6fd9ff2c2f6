"""A full recompute of every view of receipts by the batch layer, compared with DuckDB on the same Parquet files.

Both end with one JSON block per view, store and day. The batch layer reads the Delta table through Spark; DuckDB gets
the SQL that an analyst who knows it would write (`rebuild.sql`), two threads and half of the memory.
"""

import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import duckdb
import orjson

from batch_layer.blocks import Blocks, Extent, batches_for, cells_used, made_schema
from batch_layer.deliveries import deliveries
from benchmarks.master import Master, make
from benchmarks.processor import Meter
from benchmarks.report import Measured
from deploy.batch import HEAP_MB, PARTITIONS
from deploy.settings import Settings
from deploy.spark import Work, spark_session
from views import view_named
from views.core import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FULL = 5_000_000
PER_DAY = 80_000  # receipts, as many as 100 stores have
AT_LEAST = 0.2
CUT = datetime(2100, 1, 1, tzinfo=UTC)
VIEWS = ("sales", "sales_by_sku", "sales_by_till")
SQL = Path(__file__).with_name("rebuild.sql")
Timed = tuple[float, float]
"""Seconds on the clock, and seconds of processor time."""


def rebuild(size: int) -> list[Measured]:
    """`size` receipts; each engine twice, the better one counts. RuntimeError if the engines disagree."""
    folder = Path(tempfile.mkdtemp(prefix="galatea-bench-"))
    os.environ["GALATEA_HOME"] = str(folder / "home")
    try:
        master = make(folder / "pos_transactions", size, max(1, size // PER_DAY))
        spark = spark_session(Settings(), "rebuild", Work.LONG, memory_mb=HEAP_MB, partitions=PARTITIONS)
        table = spark.read.format("delta").load(str(master.path))
        _compare(table, folder, size)
        spark_times = [_timed(lambda: _by_spark(table)) for _ in range(2)]
        duckdb_times = [_timed(lambda: _by_duckdb(master.files)) for _ in range(2)]
        spark.stop()
    finally:
        rmtree(folder, ignore_errors=True)
    return [_result(master, min(spark_times), min(duckdb_times))]


def _result(master: Master, ours: Timed, beside: Timed) -> Measured:
    details = {
        "receipts": master.receipts,
        "deliveries": master.deliveries,
        "lines": master.lines,
        "spark_seconds": ours[0],
        "duckdb_seconds": beside[0],
        "spark_cpu_seconds": ours[1],
        "duckdb_cpu_seconds": beside[1],
        "cpu_ratio": round(beside[1] / ours[1], 3),
    }
    rates = (master.deliveries / ours[0], master.deliveries / beside[0])
    return Measured("rebuild", *rates, "deliveries/s", "DuckDB 2", limit=AT_LEAST, details=details)


def _by_spark(table: "DataFrame") -> None:
    found = deliveries(table)
    found.repeats.count()
    for view in map(view_named, VIEWS):
        with batches_for(view, found.first):
            _blocks(view, found.first).write.format("noop").mode("overwrite").save()
    found.release()


def _blocks(view: View, events: "DataFrame") -> "DataFrame":
    return cells_used(view, events, Extent(CUT), Blocks.of(view), made_schema(view))


def _by_duckdb(files: list[str]) -> None:
    with duckdb.connect(config={"threads": 2, "memory_limit": "3GB"}) as connection:
        connection.execute("SET VARIABLE files = ?", [files])
        connection.execute(SQL.read_text())


def _timed(work: Callable[[], object]) -> Timed:
    began = time.monotonic()
    with Meter() as meter:
        work()
    return round(time.monotonic() - began, 2), round(meter.seconds, 2)


def _compare(table: "DataFrame", folder: Path, size: int) -> None:
    """Both engines give the same cells: over a tenth of the days, which also warms Spark up."""
    days = sorted(path.name.removeprefix("day=") for path in (folder / "pos_transactions").glob("day=*"))
    some = days[: max(1, len(days) // 10)]
    found = deliveries(table.where(table.day.isin(some)))
    with duckdb.connect(config={"threads": 2}) as connection:
        files = [str(path) for day in some for path in (folder / "pos_transactions" / f"day={day}").glob("*.parquet")]
        connection.execute("SET VARIABLE files = ?", [files])
        connection.execute(SQL.read_text())
        for view in map(view_named, VIEWS):
            rows = _blocks(view, found.first).toLocalIterator()
            ours = {(row.store, row.day): _digest(row.block) for row in rows}
            duckdb_rows = connection.execute(f"SELECT store, day, block FROM {view.name}_blocks").fetchall()  # noqa: S608
            theirs = {(store, day): _digest(block) for store, day, block in duckdb_rows}
            if ours != theirs:
                raise RuntimeError(f"the engines disagree about `{view.name}` ({size} receipts)")
    found.release()


def _digest(block: str) -> str:
    """Of the cells, in whatever order they were written."""
    columns = orjson.loads(block)
    return sha256(repr(sorted(zip(*columns.values(), strict=True))).encode()).hexdigest()
