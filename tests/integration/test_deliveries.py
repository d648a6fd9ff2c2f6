"""Which delivery counts, decided by Spark: the first received, whatever hashes collide and whatever was kept twice."""

from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from batch_layer.deliveries import deliveries
from master_dataset.kafka.growth import Growth, Move, Partitions

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
SCHEMA = (
    "identity string, identity_hash long, payload_hash long, received_at timestamp, "
    "partition int, offset long, day date"
)
Row = tuple[str, int, int, datetime, int, int, date]


def row(identity: str, place: tuple[int, int], *, at: int = 0, hashed: int = 1, payload: int = 7) -> Row:
    return (identity, hashed, payload, NOON + timedelta(seconds=at), *place, NOON.date())


def places(rows: DataFrame) -> list[tuple[int, int]]:
    return sorted((found.partition, found.offset) for found in rows.collect())


def test_the_least_receipt_place_wins_and_every_later_delivery_is_a_repeat(spark: SparkSession) -> None:
    rows = [
        row("a", (0, 5), at=9),
        row("a", (0, 2), at=3),
        row("a", (0, 7), at=3, payload=8),
        row("b", (1, 0), hashed=2),
    ]

    found = deliveries(spark.createDataFrame(rows, SCHEMA))

    assert places(found.first) == [(0, 2), (1, 0)]
    assert {(each.offset, each.is_conflict) for each in found.repeats.collect()} == {(5, False), (7, True)}


def test_in_one_partition_the_least_offset_is_the_first_although_a_clock_stepped_back(spark: SparkSession) -> None:
    rows = [
        row("a", (0, 5), at=60),
        row("a", (0, 6), at=57),
        row("b", (0, 7), at=60, hashed=2),
        row("b", (0, 8), at=57, hashed=2),
        row("b", (1, 0), at=58, hashed=2),
    ]

    found = deliveries(spark.createDataFrame(rows, SCHEMA))

    assert places(found.first) == [(0, 5), (1, 0)]
    assert places(found.repeats) == [(0, 6), (0, 7), (0, 8)]


def test_where_nothing_came_twice_every_row_is_a_first_delivery(spark: SparkSession) -> None:
    rows = [row("a", (0, 1), hashed=1), row("b", (0, 2), hashed=2)]

    found = deliveries(spark.createDataFrame(rows, SCHEMA))

    assert places(found.first) == [(0, 1), (0, 2)]
    assert places(found.repeats) == []
    assert {"is_conflict", "is_miskeyed"} <= set(found.repeats.columns)


def test_two_events_whose_hashes_collide_are_both_counted(spark: SparkSession) -> None:
    rows = [row("a", (0, 1), hashed=42), row("b", (0, 2), hashed=42), row("b", (0, 3), at=1, hashed=42)]

    found = deliveries(spark.createDataFrame(rows, SCHEMA))

    assert places(found.first) == [(0, 1), (0, 2)]
    assert places(found.repeats) == [(0, 3)]


def test_record_archived_twice_is_one_event_and_no_duplicate(spark: SparkSession) -> None:
    rows = [row("a", (0, 1)), row("a", (0, 1)), row("a", (0, 4), at=2), row("a", (0, 4), at=2)]

    found = deliveries(spark.createDataFrame(rows, SCHEMA))

    assert places(found.first) == [(0, 1)]
    assert places(found.repeats) == [(0, 4)]


def test_an_identity_on_two_partitions_is_counted_once_and_said_to_be_miskeyed(spark: SparkSession) -> None:
    rows = [row("a", (1, 8), at=4), row("a", (0, 9), at=5)]

    found = deliveries(spark.createDataFrame(rows, SCHEMA))

    assert places(found.first) == [(1, 8)]
    assert [each.is_miskeyed for each in found.repeats.collect()] == [True]


def test_a_repeat_where_its_store_moved_to_is_not_miskeyed_unless_the_first_came_after_that(
    spark: SparkSession,
) -> None:
    moves = [Move(2, NOON + timedelta(seconds=100))]
    rows = [
        *(row("before", (1, 8), at=4), row("before", (5, 1), at=100)),
        *(row("after", (1, 9), at=101, hashed=2), row("after", (5, 2), at=102, hashed=2)),
        *(row("elsewhere", (0, 3), at=5, hashed=3), row("elsewhere", (5, 3), at=103, hashed=3)),
    ]

    found = deliveries(spark.createDataFrame(rows, SCHEMA), moves)

    assert places(found.first) == [(0, 3), (1, 8), (1, 9)]
    assert {each.offset: each.is_miskeyed for each in found.repeats.collect()} == {1: False, 2: True, 3: True}


def test_records_of_partitions_that_were_added_were_received_when_these_opened(spark: SparkSession) -> None:
    opened = NOON + timedelta(seconds=100)
    grown = Partitions(2, (Growth(2, 4, NOON, opened, is_open=True),))
    rows = [(partition, NOON + timedelta(seconds=at)) for partition in (1, 3) for at in (99, 101)]

    received = spark.createDataFrame(rows, "partition int, timestamp timestamp").selectExpr(grown.received_sql())

    assert [each[0].replace(tzinfo=UTC) - NOON for each in received.collect()] == [
        timedelta(seconds=seconds) for seconds in (99, 101, 100, 101)
    ]
