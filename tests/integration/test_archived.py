"""What a rebuild reads: just the rows that Delta's own reader gives of that version and those days."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.archived import PLAIN, archived
from batch_layer.arrow_events import archived_table
from batch_layer.master import Master
from master_dataset.archive.archive import Archive
from master_dataset.delta.tables import MasterTables, event_schema
from master_dataset.parsing.rows import output_schema
from master_dataset.parsing.rows import rows as parsed_rows
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.integration.test_archive import SCHEMA, Positions
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
TODAY, YESTERDAY = NOON.date(), NOON.date() - timedelta(days=1)
LONG_AGO = date(2020, 1, 1)
FOLDER = "Läden #1 [neu]"
"""What a path may hold, a URL and a glob not."""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three commits, each with a receipt of yesterday and two of today."""
    tables = MasterTables(str(tmp_path_factory.mktemp("tables") / FOLDER))
    archive = Archive(spark, tables, Positions(), lambda: default_terms)
    tables.create(POS_TRANSACTIONS)
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    for number in range(3):
        happened = [NOON - timedelta(days=1), NOON, NOON + timedelta(minutes=1)]
        rows = [record(offset, at) for offset, at in enumerate(happened, start=3 * number)]
        archive.write_batch(POS_TRANSACTIONS, spark.createDataFrame(rows, SCHEMA), number)
    return tables.path(POS_TRANSACTIONS.topic)


def record(offset: int, happened_at: datetime) -> tuple[object, ...]:
    value = receipt({"transaction_id": f'"{offset}"', "happened_at": f'"{happened_at.isoformat()}"'})
    return (b"1", value, POS_TRANSACTIONS.topic, 0, offset, NOON + timedelta(minutes=9), [])


def said(rows: DataFrame) -> list[str]:
    return sorted(str(row) for row in rows.collect())


@pytest.mark.parametrize(
    ("back", "days"),
    [
        (1, {TODAY, YESTERDAY, LONG_AGO}),
        (0, set()),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in ((0, {TODAY}), (1, {YESTERDAY}), (1, set()))),
    ],
)
def test_the_rows_are_those_of_deltas_own_reader(spark: SparkSession, table: str, days: set[date], back: int) -> None:
    version = Master.newest(table).version - back
    by_delta = spark.read.format("delta").option("versionAsOf", version).load(table)

    rows = archived(spark, POS_TRANSACTIONS, Master(table, version), days)

    if days:
        ours = archived_table(POS_TRANSACTIONS, Master(table, version), days, rows.columns)
        assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, rows.toArrow().to_pylist()))
    expected = by_delta.where(by_delta.day.isin(sorted(days))) if days else by_delta
    assert DeltaTable(table).protocol().min_reader_version == PLAIN
    assert rows.columns == by_delta.columns
    assert rows.count() > 0
    assert said(rows) == said(expected)


def test_days_without_events_have_no_rows(spark: SparkSession, table: str) -> None:
    rows = archived(spark, POS_TRANSACTIONS, Master.newest(table), {LONG_AGO})

    assert rows.count() == 0
    assert "payload_hash" in rows.columns


@pytest.mark.nightly
def test_a_table_of_an_older_version_gains_columns_that_its_rows_have_as_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = MasterTables(str(tmp_path / FOLDER))
    path, later = tables.path(POS_TRANSACTIONS.topic), ["discount", "discount_returned", "payments"]
    archive = Archive(spark, tables, Positions(), lambda: default_terms)
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    old = spark.createDataFrame([record(0, NOON)], SCHEMA).mapInArrow(
        lambda batches: parsed_rows(POS_TRANSACTIONS, batches, default_terms),
        from_arrow_schema(output_schema(POS_TRANSACTIONS)),
    )
    columns = [name for name in event_schema(POS_TRANSACTIONS).names if name not in later]
    old.select(*columns).write.format("delta").partitionBy("day").save(path)
    before = archived(spark, POS_TRANSACTIONS, Master.newest(path)).select(*later)
    assert [tuple(row) for row in before.collect()] == [(None, None, None)]

    tables.create(POS_TRANSACTIONS)
    value = receipt({"transaction_id": '"1"', "discount": "0.5", "payments": '[{"type": "card", "amount": 1}]'})
    row: tuple[object, ...] = (b"1", value, POS_TRANSACTIONS.topic, 0, 1, NOON + timedelta(minutes=9), [])
    archive.write_batch(POS_TRANSACTIONS, spark.createDataFrame([row], SCHEMA), 0)

    rows = archived(spark, POS_TRANSACTIONS, Master.newest(path))
    ours = archived_table(POS_TRANSACTIONS, Master.newest(path), Master.newest(path).days(), rows.columns)
    assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, rows.toArrow().to_pylist()))
    assert rows.columns == event_schema(POS_TRANSACTIONS).names
    found = [tuple(row) for row in rows.orderBy("offset").select(*later).collect()]
    assert found == [(None, None, None), (50, 0, [("card", 100, True)])]
    assert [tuple(row) for row in rows.orderBy("offset").select("transaction_id").collect()] == [("0",), ("1",)]
