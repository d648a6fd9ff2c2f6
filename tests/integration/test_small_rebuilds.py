"""What a small rebuild computes in its own process, beside Spark: the same rows, repeats and expressions."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.arrow_events import CountedTables, cell_batches, delivered, repeats_counted
from batch_layer.blocks import Blocks, Extent, cell_rows, cells_used, made_schema
from batch_layer.deliveries import count_repeats, deliveries
from batch_layer.ledger.events import Explained, ExplainingFrames, ExplainingRules, ExplainingTables
from batch_layer.master import Master
from batch_layer.visits import CountedRows
from master_dataset.archive.archive import Archive
from master_dataset.delta.tables import MasterTables, event_schema
from master_dataset.kafka.growth import Move
from master_dataset.parsing.rows import EVENT
from master_dataset.visits.rows import VISITS
from master_dataset.visits.visit import RULES
from tests.integration.test_archive import SCHEMA, Positions
from tests.integration.test_view_sql import CUT, STORE, TOPICS, of, parsed_table, sent
from tests.support.sensors import BEGIN, source_of
from tests.support.terms import terms_of_stores
from views import view_named
from views.arrow.expressions import Rows, evaluate
from views.core import View
from views.core.view import dimension_sql, fresh_sql, values_sql, window_sql

DAYS = [BEGIN.date() + timedelta(days=number) for number in (-1, 0, 1)]
MOVED_AT = BEGIN + timedelta(hours=2)
ROWS = 200
EXPLAINED = ("queue_events", "wifi_sightings", "pos_transactions")


@pytest.mark.parametrize(
    "topic", [each if each in EXPLAINED else pytest.param(each, marks=pytest.mark.nightly) for each in TOPICS]
)
def test_rows_of_every_view_are_those_of_spark(spark: SparkSession, topic: str) -> None:
    table = parsed_table(topic)
    events = table.filter(pc.equal(table["kind"], EVENT))
    frame = spark.createDataFrame(events).cache()
    theirs = CountedRows(frame, deliveries(frame).first, RULES, CUT)
    ours = CountedTables(events, delivered(events).first, RULES, CUT)

    for view in of(topic):
        expected = cell_rows(view, theirs.of(view, DAYS), Extent(CUT, DAYS)).toArrow()
        found = pa.Table.from_batches(cell_batches(view, ours.of(view, DAYS), CUT, DAYS))
        in_workers = cells_used(view, theirs.of(view, DAYS), Extent(CUT, DAYS), lambda rows: rows, expected.schema)
        assert counted(found.select(expected.column_names)) == counted(expected)
        assert counted(in_workers.toArrow()) == counted(expected)
        assert found.num_rows


def test_blocks_of_several_stores_are_the_same_however_spark_cuts_their_events(spark: SparkSession) -> None:
    table = parsed_table("pos_transactions")
    events = table.filter(pc.equal(table["kind"], EVENT))
    stores = pa.array([str(number % 7) for number in range(events.num_rows)])
    events = events.set_column(events.schema.get_field_index("store"), "store", stores)
    view = view_named("sales_by_sku")
    here = pa.Table.from_batches(Blocks.of(view)(cell_batches(view, events, CUT, DAYS)))
    records, size = (f"spark.sql.execution.arrow.{each}" for each in ("maxRecordsPerBatch", "maxBytesPerBatch"))
    usual, most_bytes = spark.conf.get(records), spark.conf.get(size)
    assert usual is not None

    try:
        spark.conf.set(records, 10)
        frame = spark.createDataFrame(events)
        made = cells_used(view, frame, Extent(CUT, DAYS), Blocks.of(view), made_schema(view)).toArrow()
    finally:
        spark.conf.set(records, usual)

    assert counted(made) == counted(here)
    assert len(here["store"].unique()) == 7
    assert spark.conf.get(size) == most_bytes  # other rows of the session may be large


def test_first_deliveries_and_repeats_are_those_of_spark(spark: SparkSession) -> None:
    schema = event_schema(source_of("people_counts"))
    names = ("identity", "identity_hash", "partition", "offset", "received_at", "payload_hash", "day", "store")
    rows = pa.Table.from_pylist(delivered_often(), pa.schema([schema.field(name) for name in names]))
    moves: Sequence[Move] = [Move(1, MOVED_AT), Move(2, MOVED_AT + timedelta(hours=1))]

    theirs = deliveries(spark.createDataFrame(rows), moves)
    ours = delivered(rows, moves)

    assert counted(ours.first) == counted(theirs.first.toArrow().select(list(names)))
    places = ["identity_hash", "partition", "offset", "is_conflict", "is_miskeyed"]
    assert counted(ours.repeats.select(places)) == counted(theirs.repeats.select(places).toArrow())
    assert repeats_counted(ours.repeats) == count_repeats(theirs.repeats)
    assert all(repeats_counted(ours.repeats))


def delivered_often() -> list[dict[str, Any]]:
    """Identities that came up to five times, in several partitions, with other content, and archived twice.

    Two identities share a hash.
    """
    chance, found = Random(7), []
    for offset in range(400):
        number = chance.randrange(150)
        at = BEGIN + timedelta(seconds=offset * 30 - chance.choice([0, 0, 0, 45]))  # timestamps step back
        row = {
            "identity": f"i{number}",
            "identity_hash": min(number, 148),
            "partition": chance.choice([0, number % 2, 3]),
            "offset": offset,
            "received_at": at,
            "payload_hash": chance.choice([1, 1, 1, 2]),
            "day": BEGIN.date(),
            "store": "1",
        }
        found += [row] * chance.choice([1, 1, 1, 2])
    chance.shuffle(found)
    return found


@pytest.mark.parametrize("topic", [*TOPICS, "visits"])
def test_every_expression_gives_what_spark_gives(spark: SparkSession, topic: str) -> None:
    views = [view for topic_ in TOPICS for view in of(topic_) if view.counts_visits] if topic == "visits" else of(topic)
    rows = any_rows(VISITS if topic == "visits" else event_schema(source_of(topic)), topic)
    frame = spark.createDataFrame(rows, from_arrow_schema(rows.schema))
    for view in (view for view in views if topic == "visits" or not view.counts_visits):
        events, (own, exploded) = Rows.of(rows), (rows, frame)
        if view.each is not None:
            compare(events, frame, [view.each.of], rows.num_rows)
            exploded = frame.withColumn(view.each.name, F.explode(F.expr(view.each.of)))
            elements = events.elements(view.each.name, evaluate(view.each.of, events))
            events, own = elements, rows.take(elements.parents)
        compare(events, exploded, expressions(view), own.num_rows)
    if topic == "wifi_sightings":
        compare(Rows.of(rows), frame, [fresh_sql(RULES)], rows.num_rows)


@pytest.fixture(scope="module")
def archived_tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> MasterTables:
    """Tables of several sources with late, repeated and miskeyed records."""
    tables = MasterTables(str(tmp_path_factory.mktemp("master")))
    archive = Archive(spark, tables, Positions(), lambda: terms_of_stores(STORE))
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "query")
    for topic in EXPLAINED:
        tables.create(source_of(topic))
        rows: list[tuple[object, ...]] = [
            (b"1", value, topic, number % 2 if number % 7 == 0 else 0, number, at, [])
            for number, (at, value) in enumerate(sent(topic))
        ]
        archive.write_batch(source_of(topic), spark.createDataFrame(rows, SCHEMA), 0)
    return tables


@pytest.mark.parametrize("topic", EXPLAINED)
def test_events_that_explain_corrections_are_those_of_spark(
    spark: SparkSession, archived_tables: MasterTables, topic: str
) -> None:
    master = Master.newest(archived_tables.path(topic))
    rules = ExplainingRules(timedelta(hours=3), RULES, [Move(1, MOVED_AT)])
    since, until = BEGIN + timedelta(hours=1), BEGIN + timedelta(hours=30)
    of_topic = Explained(source_of(topic), master, since, until, rules, sorted(master.days()))
    ours, theirs = ExplainingTables(of_topic), ExplainingFrames(of_topic, spark)

    for view in of(topic):
        assert ours.wholly_waited(view) == theirs.wholly_waited(view)
        for others in (False, True):
            expected = theirs.contributing(view, others=others).drop("day").toArrow()
            found = ours.contributing(view, others=others).select(expected.column_names)
            assert counted(found) == counted(expected)
            assert found.num_rows


def expressions(view: View) -> list[str]:
    dimensions = [dimension_sql(each) for each in view.dimensions.values()]
    return list(dict.fromkeys([view.where, window_sql(view.at), *dimensions, *values_sql(view)]))


def compare(rows: Rows, frame: DataFrame, some: Sequence[str], number: int) -> None:
    theirs = frame.select(*(F.expr(each).alias(f"e{at}") for at, each in enumerate(some))).toArrow()
    for at, each in enumerate(some):
        assert evaluate(each, rows).to_pylist() == theirs[f"e{at}"].to_pylist(), each
    assert theirs.num_rows == number


def any_rows(schema: pa.Schema, seed: str) -> pa.Table:
    """Rows of any values, and null wherever the type allows it: also such as no parser would make."""
    chance = Random(seed)
    return pa.table({field.name: column(field, chance) for field in schema}, schema)


def column(field: pa.Field, chance: Random) -> list[Any]:
    is_known = field.name in ("happened_at", "received_at")
    return [instant(chance) if is_known else any_value(field, chance) for _ in range(ROWS)]


def instant(chance: Random) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(2 * 86_400_000_000))


TEXTS = ["", "a", "Z", "join", "leave", "service_start", "abandon", "enter", "exit", "\u00e4", "\U0001f34e"]
NUMBERS = [0, 1, -1, 7, 999, 1000, 4999, 5000, 180_000, -900_001, 2**31 - 1]
MAKERS: dict[pa.DataType, Callable[[Random], Any]] = {
    pa.bool_(): lambda chance: chance.random() < 0.5,
    pa.string(): lambda chance: chance.choice(TEXTS),
    pa.binary(): lambda _: b"{}",
    pa.date32(): lambda _: BEGIN.date(),
    pa.int32(): lambda chance: chance.choice(NUMBERS),
    pa.int64(): lambda chance: chance.choice([*NUMBERS, 10**12]),
}


def any_value(field: pa.Field, chance: Random) -> Any:
    if chance.random() < 0.15:
        return None
    if pa.types.is_list(field.type):
        return [element(field.type, chance) for _ in range(chance.choice([0, 1, 2, 3, 5, 6, 9]))]
    if field.name.endswith("_us"):
        return int(instant(chance).timestamp() * 1_000_000)
    return MAKERS[field.type](chance)


def element(kind: pa.ListType, chance: Random) -> Any:
    """A struct in a list is never null."""
    if pa.types.is_struct(kind.value_type):
        return {each.name: any_value(each, chance) for each in kind.value_type}
    return any_value(kind.value_field, chance)


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows, whatever their order."""
    named = [name for name in table.column_names if table.num_rows]
    return Counter(zip(*(map(repr, table[name].to_pylist()) for name in named), strict=True))
