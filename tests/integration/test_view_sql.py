"""Every view in the SQL that both layers run, beside plain Python: the same cells, state by state.

`test_written_cells` has what batch writes.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.blocks import Blocks, Extent, cells_used, made_schema
from batch_layer.deliveries import deliveries
from batch_layer.visits import CountedRows
from master_dataset.parsing.rows import EVENT, output_schema, rows
from master_dataset.registry.stores import Store
from master_dataset.visits.rows import VisitKey, VisitRow, visits_table
from master_dataset.visits.visit import RULES, Sighting
from speed_layer.additions import additions
from speed_layer.arrow_tables import sighting_rows
from speed_layer.contributions import Contributions
from speed_layer.visits import OpenVisits
from tests.support import World, receipt
from tests.support.layers import Delivery, speed_rows
from tests.support.sensors import BEGIN, record, source_of, topics
from tests.support.terms import terms_of_stores
from views import registered_views
from views.arrow.contributions import contributions
from views.arrow.expressions import Rows
from views.core import States, View
from views.core.cells import CellKey, read_block
from views.core.sketch import canonical, sketch_of

EPOCH = timedelta(minutes=5)
NEVER = datetime(2100, 1, 1, tzinfo=UTC)
CUT = BEGIN + timedelta(hours=3)
OLDEST = timedelta(hours=23)
STORE = Store(id="1", timezone="Europe/Bratislava")
Sent = list[tuple[datetime, bytes]]
RECEIPTS = "pos_transactions"
SKUS = [None, "a", "b", "c", "d", "e", "Z", "10", "9", "\u00e4", "\uffff", "\U0001f34e"]
TOPICS = [*topics(), RECEIPTS]


def sent(topic: str) -> Sent:
    """Some hundred records of a day, most of them soon, some late, some twice."""
    chance = Random(topic)
    found = []
    for _ in range(400):
        drawn = (chance.randrange(1400), chance.randrange(4000), chance.randrange(6))
        delay = chance.choice([0, 1, 3, 12, 24, 40, 1300])
        first = BEGIN + timedelta(minutes=drawn[0] + delay, seconds=1)
        value = receipt_of(drawn) if topic == RECEIPTS else record(topic, drawn)
        found += [(first + timedelta(minutes=more), value) for more in {0, chance.choice([0, 0, 0, 7])}]
    return sorted(found)


def receipt_of(drawn: tuple[int, int, int]) -> bytes:
    """Up to nine lines: sales, returns and weighed goods of a few SKUs, some at one price, with a discount or none.

    A third of the receipts say how they were paid.
    """
    minute, number, lines = drawn
    chance = Random(number)
    said: list[dict[str, Any]] = [
        {"title": "t", "price": chance.choice([1, 2, 2, 9.99, -0.5]), "amount": chance.choice([1, 1, 3, 0.5, -1, -0.2])}
        | ({"sku": sku} if (sku := chance.choice(SKUS)) else {})
        for _ in range(lines + number % 5)
    ]
    for line in said[: number % 3]:
        line["discount"] = chance.choice([0, 0.1, 0.25]) * (1 if line["amount"] > 0 else -1)
    paid: list[dict[str, object]] = [
        {"type": chance.choice(["cash", "card", "voucher"]), "amount": chance.randint(-2, 9)} for _ in range(2)
    ]
    at = (BEGIN + timedelta(minutes=minute)).isoformat()
    return receipt(at, said, number=number, payments=None if number % 3 else paid)


def received(topic: str) -> Sequence[Delivery]:
    world = World(STORE, epoch=EPOCH)
    for at, value in sent(topic):
        world.receive(value, at, source_of(topic))
    return world.of("1")


def parsed(spark: SparkSession, topic: str) -> DataFrame:
    """As both layers have them from the topic."""
    return spark.createDataFrame(parsed_table(topic), from_arrow_schema(output_schema(source_of(topic))))


def parsed_table(topic: str) -> pa.Table:
    """The same in this process."""
    source = source_of(topic)
    stamped = sent(topic)
    batch = pa.RecordBatch.from_pydict(
        {
            "key": [b"1"] * len(stamped),
            "value": [value for _, value in stamped],
            "topic": [topic] * len(stamped),
            "partition": pa.array([0] * len(stamped), pa.int32()),
            "offset": list(range(len(stamped))),
            "timestamp": pa.array([at for at, _ in stamped], pa.timestamp("us", tz="UTC")),
        }
    )
    [found] = rows(source, iter([batch]), terms_of_stores(STORE))
    return pa.Table.from_batches([found])


def of(topic: str) -> list[View]:
    return [view for view in registered_views() if view.source.topic == topic]


def batch_made(view: View, counted: CountedRows, cut: datetime, days: Sequence[date] = ()) -> dict[CellKey, States]:
    made = cells_used(view, counted.of(view, days), Extent(cut, days), Blocks.of(view), made_schema(view)).toArrow()
    return {key: states for block in made["block"].to_pylist() for key, states in read_block(view, block)}


@pytest.mark.nightly
@pytest.mark.parametrize("topic", ["queue_events", "wifi_sightings", "staff_hours"])
def test_batch_gives_the_same_cells_of_a_day_from_the_days_that_the_view_reads(spark: SparkSession, topic: str) -> None:
    events = parsed(spark, topic).where(F.col("kind") == EVENT)
    whole = CountedRows(events, deliveries(events).first, RULES, CUT)
    days, compared = [BEGIN.date(), BEGIN.date() + timedelta(days=1)], 0

    for view in of(topic):
        all_ = batch_made(view, whole, CUT)
        for day in days:
            read = events.where(F.col("day").isin(sorted(view.days_read([day]))))
            part = batch_made(view, CountedRows(read, deliveries(read).first, RULES, CUT), CUT, [day])
            own = {key: states for key, states in all_.items() if datetime.fromtimestamp(key.window, UTC).date() == day}

            assert part == own
            compared += len(own)
    assert compared


@pytest.mark.parametrize("topic", TOPICS)
def test_speed_gives_the_rows_of_plain_python(topic: str) -> None:
    views = [view for view in of(topic) if not view.counts_visits]
    contribute = Contributions(of(topic), OLDEST, RULES)

    found = additions(once(events_of(topic)), contribute, contribute.shapes, EPOCH)

    added = {(of.shape, of.epoch): dict(cells) for of, cells in found}

    for view in views:
        expected = speed_rows(view, received(topic), EPOCH)
        assert {epoch: cells for (name, epoch), cells in added.items() if name == view.name} == {
            epoch: cells for epoch, cells in expected.items() if cells
        }
    assert views


def test_speed_gives_the_visits_of_plain_python() -> None:
    [view] = [view for view in registered_views() if view.counts_visits]
    topic = view.source.topic
    sightings = Contributions([view], OLDEST, RULES).sightings(events_of(topic), view)
    heard = pa.Table.from_batches(sighting_rows(sightings, view.name)).to_pylist()
    open_visits = OpenVisits(RULES, 5_000)
    visits: list[VisitRow] = []
    for each in heard:
        whose = VisitKey(each["store"], each["device"], each["business_day"])
        said = Sighting(each["received_micros"] // 1000, each["happened_ms"], bool(each["is_inside"]))
        visits += open_visits.add(0, whose, said)
    visits += open_visits.advance(0, int(NEVER.timestamp() * 1000))

    def contribute(some: pa.Table) -> Mapping[str, pa.Table]:
        return {view.name: contributions(view, Rows.of(some))}

    added = {
        of.epoch: dict(cells) for of, cells in additions(visits_table(visits), contribute, {view.name: view}, EPOCH)
    }

    assert added == speed_rows(view, received(topic), EPOCH)
    assert len(added) > 10


def test_a_sketch_that_spark_makes_is_the_sketch_that_python_makes(spark: SparkSession) -> None:
    devices = [f"{number:032x}" for number in range(1000)]
    hashed = spark.createDataFrame([(each,) for each in devices], "device string").selectExpr(
        "xxhash64(device) AS hash"
    )

    [theirs] = hashed.selectExpr("hll_sketch_agg(hash, 12) AS sketch").collect()
    ours = sketch_of(row.hash for row in hashed.collect())

    assert canonical(bytes(theirs.sketch)) == ours


def events_of(topic: str) -> pa.Table:
    """Events, in the order of the topic."""
    table = parsed_table(topic)
    return table.filter(pc.equal(table["kind"], EVENT))


def once(arrived: pa.Table) -> pa.Table:
    """First deliveries: of records that came twice the first."""
    seen: set[str] = set()
    firsts = []
    for place, identity in enumerate(arrived["identity"].to_pylist()):
        if identity not in seen:
            firsts.append(place)
        seen.add(identity)
    return arrived.take(firsts)
