"""Few events that are large are read by Spark, which has bounded memory, and not by this process."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from batch_layer import arrow_events, computed
from batch_layer.arrow_events import TooManyBytesError, archived_table, keep_conflicts_of
from batch_layer.computed import ArrowPortion, PortionEvents, computed_portion
from batch_layer.master import Master
from master_dataset.delta.tables import CONFLICTS, MasterTables, event_schema
from master_dataset.parsing.rows import output_schema
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.storage import open_table
from master_dataset.visits.visit import RULES
from views.sales import SALES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)
DAY = date(2026, 3, 7)
FEW = 1000


@pytest.fixture
def master(tmp_path: Path) -> Master:
    """Two events of one day."""
    names = [
        name for name in output_schema(POS_TRANSACTIONS).names if name not in ("kind", "reason", "field", "sentence")
    ]
    known: dict[str, Any] = {"day": DAY, "received_at": NOON, "happened_at": NOON, "partition": 0, "identity_hash": 1}
    schema = pa.schema([output_schema(POS_TRANSACTIONS).field(name) for name in names])
    rows = [{**dict.fromkeys(names), **known, "offset": offset, "identity_hash": offset} for offset in range(2)]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema), partition_by=["day"])
    return Master.newest(str(tmp_path))


def portion(master: Master) -> PortionEvents:
    return PortionEvents(POS_TRANSACTIONS, master, [DAY], [DAY], NOON, RULES, (), [SALES])


def no_spark() -> "SparkSession":
    raise AssertionError("Spark is started")


def test_a_small_portion_is_read_in_this_process(master: Master) -> None:
    found = computed_portion(portion(master), no_spark, FEW)

    assert isinstance(found, ArrowPortion)
    assert found.repeats.repeats == 0


def test_a_portion_of_few_large_events_is_read_by_spark(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_events, "MOST_BYTES", 100)
    monkeypatch.setattr(computed, "SparkPortion", lambda of, spark: (of, spark))
    of, spark = portion(master), cast("SparkSession", object())

    with pytest.raises(TooManyBytesError):
        archived_table(POS_TRANSACTIONS, master, [DAY], SALES.columns_read)

    assert cast("Any", computed_portion(of, lambda: spark, FEW)) == (of, spark)


def test_what_was_read_goes_back_to_the_system_before_spark_starts(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    pool = SimpleNamespace(release_unused=lambda: done.append("released"))
    monkeypatch.setattr(arrow_events, "MOST_BYTES", 100)
    monkeypatch.setattr(computed, "SparkPortion", lambda _of, _spark: None)
    monkeypatch.setattr(pa, "default_memory_pool", lambda: pool)

    computed_portion(portion(master), lambda: cast("SparkSession", done.append("Spark")), FEW)

    assert done == ["released", "Spark"]


CONFLICTING = range(1, 6)
"""Offsets."""
VALUE = 1000


@pytest.fixture
def tables(tmp_path: Path) -> MasterTables:
    """Events of two partitions at the same offsets; those of the other partition are a hundred times as large."""
    tables = MasterTables(str(tmp_path))
    tables.create(POS_TRANSACTIONS)
    schema = event_schema(POS_TRANSACTIONS)
    rows = [
        {
            **dict.fromkeys(schema.names),
            "topic": POS_TRANSACTIONS.topic,
            "partition": partition,
            "offset": offset,
            "day": DAY,
            "received_at": NOON,
            "happened_at": NOON,
            "identity_hash": offset,
            "key": b"1",
            "value": b"%d" % offset * VALUE * (1 + 99 * partition),
        }
        for partition in range(2)
        for offset in (0, *CONFLICTING)
    ]
    path = tables.path(POS_TRANSACTIONS.topic)
    write_deltalake(path, pa.Table.from_pylist(rows, schema), mode="append", partition_by=["day"])
    return tables


def conflicts(offsets: Sequence[int]) -> pa.Table:
    rows = [
        {"identity_hash": each, "partition": 0, "offset": each, "day": DAY, "is_conflict": bool(each)}
        for each in offsets
    ]
    types = [("identity_hash", pa.int64()), ("partition", pa.int32()), ("offset", pa.int64()), ("day", pa.date32())]
    return pa.Table.from_pylist(rows, pa.schema([*types, ("is_conflict", pa.bool_())]))


@pytest.mark.parametrize(("most", "commits"), [(2**20, 1), (3 * VALUE, 3), (1, 5)])
def test_conflicts_that_are_too_large_together_are_kept_in_parts(
    tables: MasterTables, monkeypatch: pytest.MonkeyPatch, most: int, commits: int
) -> None:
    monkeypatch.setattr(arrow_events, "MOST_BYTES", most)
    master = Master.newest(tables.path(POS_TRANSACTIONS.topic))
    before = open_table(tables.path(CONFLICTS)).version()

    for _ in range(2):
        keep_conflicts_of(tables, POS_TRANSACTIONS, master, conflicts([0, *CONFLICTING]))

    kept = open_table(tables.path(CONFLICTS))
    rows = kept.to_pyarrow_table(columns=["partition", "offset", "key", "value"]).sort_by("offset").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(0, each, b"1", b"%d" % each * VALUE) for each in CONFLICTING]
    assert kept.version() - before == commits
