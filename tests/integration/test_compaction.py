"""Compaction of tables that Spark writes: fewer files, the same rows, with concurrent appends and compactions."""

import shutil
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from cassandra.cluster import Session
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from batch_layer.archived import PLAIN, archived, report_unreadable_files
from batch_layer.master import Master
from master_dataset.archive.archive import Archive
from master_dataset.cassandra_tables import Lease, leased
from master_dataset.delta.compaction import Compacted, Compaction, compact_partitions
from master_dataset.delta.tables import DEAD_LETTERS, MasterTables
from master_dataset.errors import LeaseHeldError, MasterFileLostError
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.integration.test_archive import SCHEMA, Positions
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
TODAY, YESTERDAY = NOON.date(), NOON.date() - timedelta(days=1)


class Writer:
    """An archive and its tables."""

    def __init__(self, spark: SparkSession, root: Path, batches: int = 0) -> None:
        self.spark, self.tables = spark, MasterTables(str(root))
        self._archive = Archive(spark, self.tables, Positions(), lambda: default_terms)
        self._batches = batches
        self.tables.create(POS_TRANSACTIONS)
        spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")

    @property
    def path(self) -> str:
        return self.tables.path(POS_TRANSACTIONS.topic)

    def append(self, day: date, times: int = 1) -> None:
        """A receipt of the day and a dead letter."""
        for _ in range(times):
            happened = f'"{day}T10:00:00+00:00"'
            value = receipt({"transaction_id": f'"{self._batches}"', "happened_at": happened})
            rows: list[tuple[object, ...]] = [
                (b"1", each, POS_TRANSACTIONS.topic, 0, 2 * self._batches + place, NOON, [])
                for place, each in enumerate((value, b"{"))
            ]
            self._archive.write_batch(POS_TRANSACTIONS, self.spark.createDataFrame(rows, SCHEMA), self._batches)
            self._batches += 1

    def rows(self) -> list[str]:
        return sorted(map(str, archived(self.spark, POS_TRANSACTIONS, Master.newest(self.path)).collect()))


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four small files of today, one of yesterday."""
    writer = Writer(spark, tmp_path_factory.mktemp("written"))
    writer.append(TODAY, 4)
    writer.append(YESTERDAY)
    return Path(writer.tables.root)


@pytest.fixture
def writer(spark: SparkSession, written: Path, tmp_path: Path) -> Writer:
    """The same, for one test."""
    shutil.copytree(written, tmp_path / "master")
    return Writer(spark, tmp_path / "master", batches=5)


def compact(path: str) -> Compacted:
    return Compaction(lambda: None, 7).run(path, lambda *_: None)


def files(path: str) -> Counter[date]:
    return Counter(
        each["partition.day"] for each in pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pylist()
    )


def test_days_of_several_small_files_become_one_file_with_the_same_rows_and_the_same_protocol(writer: Writer) -> None:
    before = writer.rows()

    done, dead_letters = compact(writer.path), compact(writer.tables.path(DEAD_LETTERS))

    assert files(writer.path) == {TODAY: 1, YESTERDAY: 1}
    assert (done.files_before, done.files_after, dead_letters.files_before, dead_letters.files_after) == (5, 2, 5, 1)
    assert writer.rows() == before
    assert len(before) == writer.spark.read.format("delta").load(writer.path).count() == 5
    protocol = DeltaTable(writer.path).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (PLAIN, 2)
    assert (compact(writer.path).files_before, DeltaTable(writer.path).version()) == (
        2,
        6,
    )  # a second one changes nothing


@pytest.mark.nightly
def test_what_spark_appends_while_a_upkeep_runs_is_there_and_an_older_plan_reads_what_was_replaced(
    writer: Writer,
) -> None:
    planned = Master.newest(writer.path)
    loaded = DeltaTable(writer.path)
    writer.append(TODAY)

    compact_partitions(loaded, [str(TODAY)])
    writer.append(TODAY)

    assert len(writer.rows()) == 7
    assert files(writer.path)[TODAY] == 3
    assert archived(writer.spark, POS_TRANSACTIONS, planned).count() == 5


def test_a_file_that_is_broken_gone_or_empty_is_named_with_what_to_do_and_never_passed_over(writer: Writer) -> None:
    compact(writer.path)
    [file] = DeltaTable(writer.path).file_uris(file_pruning_predicate=[("day", "=", str(TODAY))])
    writer.append(TODAY)
    whole, named = Path(file).read_bytes(), Path(file).name

    def said() -> list[str]:
        found = []
        for each in (writer.rows, lambda: compact_partitions(DeltaTable(writer.path), [str(TODAY)])):
            with pytest.raises(MasterFileLostError) as lost, report_unreadable_files(writer.tables):
                each()
            assert named in lost.value.message
            found.append(lost.value.do)
        return found

    Path(file).write_bytes(whole[:64] + bytes(len(whole) - 128) + whole[-64:])
    broken = said()
    Path(file).write_bytes(b"")
    empty = said()
    Path(file).unlink()
    gone = said()
    Path(file).write_bytes(whole)

    assert len(writer.rows()) == 6
    assert {do.partition(" from")[0] for do in (*broken, *empty, *gone)} == {f"put `day={TODAY}/{named}` back"}


def test_a_plan_older_than_the_replaced_files_is_to_be_made_anew(writer: Writer) -> None:
    planned = Master.newest(writer.path)
    compact(writer.path)
    DeltaTable(writer.path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    with pytest.raises(MasterFileLostError) as lost:
        archived(writer.spark, POS_TRANSACTIONS, planned)

    assert lost.value.do == "start again: galatea rebuild"


def test_of_two_compactions_the_second_is_refused_until_the_first_has_ended_or_lost_its_lease(
    shared_cassandra: Session,
) -> None:
    first, second = Lease(shared_cassandra, "compaction"), Lease(shared_cassandra, "compaction")

    with leased(shared_cassandra, "compaction"), pytest.raises(LeaseHeldError):
        first.take()
    first.take()
    first.renew()
    with pytest.raises(LeaseHeldError):
        second.take()
    first.release()

    second.take()
    with pytest.raises(LeaseHeldError):
        first.renew()
    second.release()
