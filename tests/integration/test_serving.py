"""What serving reads from a real Cassandra equals what it reads from the World that was written there."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import orjson
import pytest

from serving_layer.store.readers import Readers
from serving_layer.tables import (
    AsyncSession,
    BatchTables,
    LedgerTables,
    PublishedTables,
    ReceiptTables,
    RecomputeTables,
    SpeedTables,
    StoreTables,
    WatchTables,
)
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_in_cassandra import write
from tests.support.world_sql import AskingSql
from views.control.recompute import Done, Problem, Progress, Recompute, RecomputeRequest, Recomputes
from views.control.speed_layout import BY_VIEW, SpeedLayout

if TYPE_CHECKING:
    from cassandra.cluster import Session

DAYS = {"store": "1", "from_": "2026-11-19", "to": "2026-11-22"}
QUESTIONS = [
    ("/v1/metrics/net_sales", DAYS | {"grain": "15m"}),
    ("/v1/metrics/average_unit_retail", DAYS | {"grain": "hour_of_week"}),
    ("/v1/metrics/till_share", DAYS | {"grain": "day", "by": "till"}),
    ("/v1/views/sales_by_sku/cells", DAYS),
    ("/v1/raw/pos_transactions", {"store": "1", "day": "2026-11-20", "limit": "1000"}),
    ("/v1/metrics/net_sales", DAYS | {"grain": "15m", "as_of": 1}),
    ("/v1/views/sales_by_till/cells", DAYS | {"as_of": 1}),
    ("/v1/metrics/net_sales", DAYS | {"by": "total"}),
    ("/v1/metrics/sku_net_sales", DAYS | {"by": "total,sku", "grain": "total", "top": 1}),
    ("/v1/publications", {}),
    ("/v1/publications", {"limit": 1}),
    ("/v1/publications", {"before": 1}),
    ("/v1/corrections", {}),
    ("/v1/corrections", {"limit": 5}),
    ("/v1/corrections", {"store": "1", "view": "sales_by_till", "cause": "waited", "limit": 1000}),
    ("/v1/corrections", {"cause": "unexplained"}),
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
    line = {
        "window": 1795161600,
        "dimensions": {"currency": "EUR"},
        "state": "net_sales",
        "shown": None,
        "corrected": 5,
        "difference": 5,
        "cause": "unexplained",
        "events": ["one"],
        "events_total": 1,
    }
    causes = {"waited": {"cells": 9}, "unexplained": {"cells": 2}}
    world.ledgers["1"] = world.ledgers["1"]._replace(totals={"cells": 11, "rows": 20, "causes": causes})
    new = {"whole": "waited", "run": "run-1", "events_total": 7}
    lines = json.dumps([line, line])
    days = [date(2026, 11, 19), date(2026, 11, 20)]
    world.corrections["run-1", "sales"] = {(store, day): lines for store in ("1", "2", "é") for day in days}
    world.corrections["run-1", "sales_by_till"] = {("1", days[0]): json.dumps(new), ("0", days[1]): lines}
    return world


@pytest.fixture
def world() -> World:
    """A world to be changed."""
    return three_days()


@pytest.fixture
def real(world: World, cassandra: "Session") -> Asking:
    """Serving over the tables of that world."""
    write(world, cassandra)
    return asking_of(world, cassandra)


@pytest.fixture(scope="module", params=[BY_VIEW, SpeedLayout.for_stores(3)], ids=["by view", "by store"])
def unchanged(shared_cassandra: "Session", request: pytest.FixtureRequest) -> tuple[World, Asking]:
    """A world that is only read, and serving over its tables. The layout of a generation never changes otherwise."""
    world = three_days()
    write(world, shared_cassandra, request.param)
    return world, asking_of(world, shared_cassandra)


def readers_of(bridge: AsyncSession) -> Readers:
    return Readers(
        PublishedTables(bridge), BatchTables(bridge), SpeedTables(bridge), StoreTables(bridge), ReceiptTables(bridge)
    )


def asking_of(world: World, session: "Session") -> Asking:
    """Serving with the real readers."""
    bridge = AsyncSession(session)
    return Asking(world, readers_of(bridge), WatchTables(bridge), LedgerTables(bridge), RecomputeTables(bridge))


@pytest.mark.parametrize(("path", "question"), QUESTIONS)
def test_the_tables_answer_as_the_world_does(
    unchanged: tuple[World, Asking], path: str, question: dict[str, object]
) -> None:
    world, real = unchanged

    answered = real.body(path, key=OPERATOR_KEY, **question)

    assert answered == Asking(world).body(path, key=OPERATOR_KEY, **question)


def test_a_transaction_of_sql_reads_the_micro_batches_that_were_complete_when_it_began(
    world: World, cassandra: "Session"
) -> None:
    write(world, cassandra)
    with AskingSql(world, readers=readers_of(AsyncSession(cassandra))) as sql:
        session = sql.open()
        sql.answer("begin", session=session)
        [before] = sql.rows("select sum(receipts) from sales_day", session=session)

        world.begin_micro_batch()
        world.receive(receipt("2026-11-21T12:00:00Z", minor=5, number=999), "2026-11-21T12:00:01Z")
        write(world, cassandra)

        by_till = "select sum(receipts) from sales_by_till_day"
        assert sql.rows(by_till, session=session) == [before]
        assert sql.rows(by_till) == [(before[0] + 1,)]
        sql.answer("commit", session=session)
        assert sql.rows(by_till, session=session) == [(before[0] + 1,)]


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


@pytest.mark.parametrize("question", [{}, {"store": "1"}, {"store": "\u00e9"}, {"cause": "unexplained"}])
def test_pages_of_corrections_follow_each_other_without_a_gap(
    unchanged: tuple[World, Asking], question: dict[str, object]
) -> None:
    _, real = unchanged
    whole = real.body("/v1/corrections", key=OPERATOR_KEY, **question, limit=1000)["corrections"]

    pages, token = [], None
    while True:
        after: dict[str, str] = {"after": token} if token else {}
        page = real.body("/v1/corrections", key=OPERATOR_KEY, **question, limit=3, **after)
        pages += page["corrections"]
        token = page["next"]
        if token is None:
            break

    assert pages == whole
    assert len(whole) >= 4


def test_freshness_reads_the_newest_ledger(unchanged: tuple[World, Asking]) -> None:
    _, real = unchanged

    [alarm] = [each for each in real.body("/v1/freshness", key=OPERATOR_KEY)["alarms"] if each["name"] == "unexplained"]

    assert alarm["do"] == "galatea corrections 1 --cause unexplained"


def test_a_collected_publication_is_gone_and_the_others_are_as_they_were(
    world: World, real: Asking, cassandra: "Session"
) -> None:
    world.rebuild("2026-11-21T18:00:00Z")
    write(world, cassandra)
    question = DAYS | {"grain": "total"}
    second = real.body("/v1/metrics/net_sales", **question, as_of=2)

    cassandra.execute(
        "UPDATE publications SET collected_at = toTimestamp(now()) WHERE series = 'galatea' AND publication = 1"
    )

    assert real.refusal("/v1/metrics/net_sales", **question, as_of=1)["code"] == "publication_collected"
    assert real.body("/v1/metrics/net_sales", **question, as_of=2) == second
    assert real.refusal("/v1/metrics/net_sales", **question, as_of=9)["code"] == "unknown_name"


def test_a_recompute_is_shown_as_it_was_written_down(
    unchanged: tuple[World, Asking], shared_cassandra: "Session"
) -> None:
    _, real = unchanged
    request = RecomputeRequest(("sales",), date(2026, 11, 1), None, ("12",))
    written_down = Recomputes(shared_cassandra)
    mine = f"mine-{uuid4().hex}"
    written_down.create(Recompute(mine, request, "operator", "a test", datetime(2026, 11, 21, tzinfo=UTC), "asked"))
    first = real.body(f"/v1/recomputes/{mine}", key=OPERATOR_KEY)

    problem = Problem("cut_not_reached", "too slow", "galatea lag")
    progress = Progress(Done(1, 2), Done(10, 20), 1.5, 6.7, "sales")
    written_down.update(mine, "failed", problem=problem, progress=progress)
    last = real.body(f"/v1/recomputes/{mine}", key=OPERATOR_KEY)

    column_names = ("state", "asked", "asked_at", "progress", "problem", "publication", "report")
    assert [first[name] for name in column_names] == [
        "asked",
        orjson.loads(request.to_json()),
        "2026-11-21T00:00:00Z",
        None,
        None,
        None,
        None,
    ]
    assert [last[name] for name in column_names[3:5]] == [msgspec.to_builtins(each) for each in (progress, problem)]
    assert (first["ended_at"], last["ended_at"]) == (None, last["updated_at"])
    assert real.refusal("/v1/recomputes/yours", key=OPERATOR_KEY)["code"] == "unknown_name"
