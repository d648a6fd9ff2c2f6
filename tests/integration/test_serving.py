"""What serving reads from a real Cassandra equals what it reads from the World that was written there."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from serving_layer.readers import Readers
from serving_layer.tables import BatchTables, Bridge, PublishedTables, ReceiptTables, SpeedTables, StoreTables
from tests.world import World, receipt
from tests.world.asking import Asking
from tests.world.world import at
from tests.world.written import write

if TYPE_CHECKING:
    from cassandra.cluster import Session

DAYS = {"store": "1", "from_": "2026-11-19", "to": "2026-11-22"}
QUESTIONS = [
    ("/v1/metrics/net_sales", DAYS | {"grain": "15m"}),
    ("/v1/metrics/average_unit_retail", DAYS | {"grain": "hour_of_week"}),
    ("/v1/metrics/till_share", DAYS | {"grain": "day", "by": "till"}),
    ("/v1/views/sales_by_sku/cells", DAYS),
    ("/v1/raw/pos_transactions", {"store": "1", "day": "2026-11-20", "limit": "1000"}),
    ("/v1/publications", {}),
    ("/v1/stores", {}),
]


OLD_REPEATS = 1
"""Of the receipts below that come behind the cut, number 91 is late by days and sent twice: the repeat waits, too."""


def three_days() -> World:
    """Three days of sales, every thirteenth late by days, every seventh twice; published on the second evening."""
    world = World()
    first = at("2026-11-19T08:00:00Z")
    sent = []
    for number in range(150):
        happened_at = first + timedelta(minutes=19 * number)
        value = receipt(happened_at.isoformat(), minor=100 + number, number=number, till=str(number % 3))
        late = timedelta(hours=30) if number % 13 == 0 else timedelta(seconds=2)
        sent += [(happened_at + late, value)] + [(happened_at + late + timedelta(minutes=7), value)] * (number % 7 == 0)
    for received_at, value in sorted(sent):
        world.receive(value, received_at)
    world.rebuild("2026-11-20T18:00:00Z")
    world.pass_time(sent[-1][0])
    return world


@pytest.fixture
def world() -> World:
    """A world to be changed."""
    return three_days()


@pytest.fixture
def real(world: World, cassandra: "Session") -> Asking:
    """Serving over the tables of that world."""
    write(world, cassandra)
    return Asking(world, readers_of(cassandra))


@pytest.fixture(scope="module")
def unchanged(shared_cassandra: "Session") -> tuple[World, Asking]:
    """A world that is only read, and serving over its tables."""
    world = three_days()
    write(world, shared_cassandra)
    return world, Asking(world, readers_of(shared_cassandra))


def readers_of(session: "Session") -> Readers:
    """The real readers."""
    bridge = Bridge(session)
    return Readers(
        PublishedTables(bridge), BatchTables(bridge), SpeedTables(bridge), StoreTables(bridge), ReceiptTables(bridge)
    )


@pytest.mark.parametrize(("path", "question"), QUESTIONS)
def test_the_tables_answer_as_the_world_does(
    unchanged: tuple[World, Asking], path: str, question: dict[str, object]
) -> None:
    world, real = unchanged

    answered = real.body(path, **question)

    assert answered == Asking(world).body(path, **question)


def test_a_receipt_that_arrives_is_in_the_next_answer(world: World, real: Asking, cassandra: "Session") -> None:
    question = DAYS | {"grain": "total"}
    before = real.body("/v1/metrics/total_transactions_count", **question)["series"][0]["points"][0]

    world.receive(receipt("2026-11-21T12:00:00Z", minor=5, number=999), "2026-11-21T12:00:01Z")
    write(world, cassandra)

    after = real.body("/v1/metrics/total_transactions_count", **question)["series"][0]["points"][0]
    assert (after["value"], after["final"]) == (before["value"] + 1, False)


def test_a_publication_moves_no_number_but_the_waiting_ones(world: World, real: Asking, cassandra: "Session") -> None:
    before = real.body("/v1/metrics/total_transactions_count", **DAYS | {"grain": "total"})

    world.rebuild(world.speed_as_of + timedelta(minutes=5) if world.speed_as_of else "2026-11-22T00:00:00Z")
    write(world, cassandra)
    after = real.body("/v1/metrics/total_transactions_count", **DAYS | {"grain": "total"})

    shown, corrected = (body["series"][0]["points"][0]["value"] for body in (before, after))
    assert corrected - shown == before["as_of"]["waiting_for_batch"] - OLD_REPEATS > 0
    assert (after["as_of"]["publication"], after["as_of"]["waiting_for_batch"]) == (2, 0)


def test_pages_of_receipts_follow_each_other_without_a_gap(unchanged: tuple[World, Asking]) -> None:
    _, real = unchanged
    question = {"store": "1", "day": "2026-11-20"}
    whole = real.body("/v1/raw/pos_transactions", **question, limit=1000)["receipts"]

    pages, token = [], None
    while True:
        page = real.body("/v1/raw/pos_transactions", **question, limit=7, **({"after": token} if token else {}))
        pages += page["receipts"]
        token = page["next"]
        if token is None:
            break

    assert pages == whole
    assert len(whole) > 50
