"""A delivery that repeats an identity with another content is kept whole, once, as a dead letter of its own table."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from batch_layer.computed import ArrowPortion, ComputedPortion, PortionEvents, SparkPortion
from batch_layer.deliveries import Repeats
from batch_layer.master import Master
from master_dataset.archive.archive import Archive
from master_dataset.delta.tables import CONFLICTS, MasterTables
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.visits.visit import RULES
from tests.integration.test_archive import SCHEMA, Positions
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
FIRST, OTHER = receipt(), receipt({"title": '"Beer"'})


@pytest.fixture
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> MasterTables:
    """A receipt, the same again, and one of its identity with another title, which was archived twice."""
    tables = MasterTables(str(tmp_path_factory.mktemp("master")))
    archive = Archive(spark, tables, Positions(), lambda: default_terms)
    tables.create(POS_TRANSACTIONS)
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    for number, values in enumerate([{0: FIRST, 1: FIRST, 2: OTHER}, {2: OTHER}]):
        rows: list[tuple[object, ...]] = [
            (b"1", value, POS_TRANSACTIONS.topic, 0, offset, NOON + timedelta(seconds=offset), [])
            for offset, value in values.items()
        ]
        archive.write_batch(POS_TRANSACTIONS, spark.createDataFrame(rows, SCHEMA), number)
    return tables


@pytest.mark.parametrize("portion", [pytest.param("spark", marks=pytest.mark.nightly), "arrow"])
def test_a_conflict_is_kept_once_with_its_own_bytes_however_often_its_day_is_rebuilt(
    spark: SparkSession, tables: MasterTables, portion: str
) -> None:
    master = Master.newest(tables.path(POS_TRANSACTIONS.topic))
    days = master.days()
    of = PortionEvents(POS_TRANSACTIONS, master, days, days, NOON + timedelta(hours=1), RULES, (), ())

    def rebuilt() -> tuple[Repeats, DataFrame]:
        computed: ComputedPortion = ArrowPortion(of) if portion == "arrow" else SparkPortion(of, spark)
        computed.keep_conflicts(tables)
        return computed.repeats, spark.read.format("delta").load(tables.path(CONFLICTS))

    found = [rebuilt() for _ in range(2)]

    assert [counted for counted, _ in found] == [Repeats(repeats=2, conflicts=1, miskeyed=0)] * 2
    dead_letters = found[-1][1].collect()
    assert [(each.partition, each.offset, bytes(each.key), bytes(each.value)) for each in dead_letters] == [
        (0, 2, b"1", OTHER)
    ]
    assert (dead_letters[0].reason, dead_letters[0].received_at) == (
        "conflicting_duplicate",
        (NOON + timedelta(seconds=2)).replace(tzinfo=None),
    )
