"""The archive with real Spark and Delta: everything of a micro-batch is kept, and kept once when it is repeated."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from master_dataset.archive.archive import Archive
from master_dataset.delta.tables import DEAD_LETTERS, MasterTables
from master_dataset.failpoints import Failpoint
from master_dataset.kafka.partition_progress import Progress
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

RECEIVED = datetime(2026, 3, 7, 9, 6, tzinfo=UTC)
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)


@dataclass
class Positions:
    """Remembers what was recorded."""

    found: dict[int, int] = field(default_factory=dict)

    def record(self, _topic: str, partition: int, position: int, _received_at: datetime) -> None:
        self.found[partition] = position

    def read(self) -> dict[str, dict[int, int]]:
        return {}


@dataclass
class Watch:
    """Keeps each report: records, events, dead letters by reason, and whether it is a repeat."""

    reported: list[tuple[int, int, Counter[str], bool]] = field(default_factory=list)

    def on_batch(self, topic: str, progress: Progress, *, repeats: bool) -> None:
        assert (topic, {each.oldest_at for each in progress.values()}) == (POS_TRANSACTIONS.topic, {RECEIVED})
        events = sum(each.events for each in progress.values())
        received = sum(each.received for each in progress.values())
        self.reported.append(
            (received, events, sum((each.dead_letters for each in progress.values()), Counter()), repeats)
        )


def records(spark: SparkSession, broken: Collection[int] = (5,)) -> DataFrame:
    """`broken`: the offsets of partition 0 that are no events."""
    marker = [("galatea-marker", b"")]
    rows = [
        *((0, offset, b"{" if offset in broken else receipt(), []) for offset in (4, 5, 6)),
        (3, 0, receipt({"transaction_id": "2"}), []),
        (3, 1, b"", marker),
        (5, 8, b"", marker),
    ]
    return spark.createDataFrame(
        [(b"1", value, "pos_transactions", part, offset, RECEIVED, heads) for part, offset, value, heads in rows],
        SCHEMA,
    )


def places(path: str) -> list[tuple[int, int]]:
    rows = DeltaTable(path).to_pyarrow_table(columns=["partition", "offset"]).to_pylist()
    return sorted((row["partition"], row["offset"]) for row in rows)


def test_a_batch_that_is_repeated_after_a_crash_is_kept_once_and_its_positions_are_recorded(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, positions, watch = MasterTables(str(tmp_path)), Positions(), Watch()
    tables.create(POS_TRANSACTIONS)
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    found = []

    for _process in range(2):
        archive = Archive(spark, tables, positions, lambda: default_terms, watch)
        archive.write_batch(POS_TRANSACTIONS, records(spark), 7)
        found.append(dict(positions.found))
        positions.found.clear()

    assert found == [{0: 7, 3: 2, 5: 9}] * 2
    assert watch.reported == [(4, 3, Counter(not_json=1), False), (4, 3, Counter(not_json=1), True)]
    assert places(tables.path(POS_TRANSACTIONS.topic)) == [(0, 4), (0, 6), (3, 0)]
    assert places(tables.path(DEAD_LETTERS)) == [(0, 5)]


def test_what_a_crash_left_out_is_written_although_stores_were_registered_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, positions = MasterTables(str(tmp_path)), Positions()
    tables.create(POS_TRANSACTIONS)
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")

    def write(broken: Collection[int], *, crash_at: Failpoint | None) -> None:
        def crash(passed: Failpoint) -> None:
            if passed is crash_at:
                raise KeyboardInterrupt

        monkeypatch.setattr("master_dataset.archive.archive.failpoint", crash)
        archive = Archive(spark, tables, positions, lambda: default_terms)
        archive.write_batch(POS_TRANSACTIONS, records(spark, broken), 7)

    with pytest.raises(KeyboardInterrupt):
        write((5, 6), crash_at=Failpoint.ARCHIVE_EVENTS)
    with pytest.raises(KeyboardInterrupt):
        write((4, 5), crash_at=Failpoint.ARCHIVE_DEAD_LETTERS)
    write((), crash_at=None)

    assert positions.found == {0: 7, 3: 2, 5: 9}
    assert places(tables.path(POS_TRANSACTIONS.topic)) == [(0, 4), (0, 6), (3, 0)]
    assert places(tables.path(DEAD_LETTERS)) == [(0, 5)]
