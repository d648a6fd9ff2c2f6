"""What SQL keeps between statements never shows: each result is that of a process that has kept nothing."""

import asyncio
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from master_dataset.registry.stores import Store
from serving_layer.caching import SharedRuns
from serving_layer.query.fetch import StoreData, fetch
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.sql import view_tables
from serving_layer.sql.plan import Plan, Tables, plan
from serving_layer.sql.results import QueryResult
from serving_layer.sql.session import Session
from serving_layer.sql.view_tables import split_at
from tests.support import World, receipt
from tests.support.examples import IS_FULL
from tests.support.sensors import BEGIN, record, source_of
from tests.support.world_sql import AskingSql
from views.core.cut import instant

COUNTER = "people_counts"
FIRST = datetime.fromisoformat("2026-03-01T00:00:00Z")
TABLES = (
    "select * from sales_day order by store, day, net_sales",
    "select * from sales_15m where start >= '2026-03-02' order by store, start, net_sales",
    "select * from traffic_day order by store, day",
    "select * from traffic_hour order by store, start",
    "select day, sum(net_sales) from sales_by_sku_day where store = '2' group by day order by day",
)


def rows(sql: AskingSql) -> list[Sequence[tuple[Any, ...]]]:
    return [sql.rows(each) for each in TABLES]


class Shops:
    """Two stores, whose events are sent one after the other."""

    def __init__(self) -> None:
        self.world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="America/New_York"))
        self.sent = 0

    def sell(self, store: str, happened: datetime, received: datetime) -> None:
        self.sent += 1
        text = f"{happened:%Y-%m-%dT%H:%M:%SZ}"
        self.world.receive(receipt(text, minor=100 + self.sent, number=self.sent, store=store), received)

    def count(self, store: str, happened: datetime, received: datetime) -> None:
        self.sent += 1
        minutes = int((happened - BEGIN).total_seconds()) // 60
        value = record(COUNTER, (minutes, 10 + self.sent, 1), store)
        self.world.receive(value, received, source_of(COUNTER))


EVENTS = st.tuples(st.sampled_from("12"), st.integers(0, 4 * 96), st.booleans())


@settings(max_examples=30 if IS_FULL else 3, deadline=None)
@given(st.lists(st.one_of(EVENTS, st.just("publish")), min_size=1, max_size=4))
def test_whatever_arrives_or_is_published_a_process_that_has_answered_before_answers_as_a_new_one(
    steps: list[tuple[str, int, bool] | str],
) -> None:
    shops, now = Shops(), FIRST + timedelta(days=4)
    for number in range(12):
        happened = FIRST + timedelta(hours=7 * number)
        shops.sell("12"[number % 2], happened, happened)
        shops.count("12"[number % 2], happened, happened)
    shops.world.rebuild(now)
    with AskingSql(shops.world) as sql:
        rows(sql)
        for step in steps:
            now += timedelta(minutes=20)
            if isinstance(step, str):
                shops.world.rebuild(now)
            else:
                store, quarter, is_sale = step
                send = shops.sell if is_sale else shops.count
                send(store, FIRST + timedelta(minutes=15 * quarter), now)
            shops.world.pass_time(now + timedelta(minutes=10))
            kept = rows(sql)
            with AskingSql(shops.world) as fresh:
                assert kept == rows(fresh)


@pytest.fixture
def shops() -> Shops:
    shops = Shops()
    del shops.world.stores["2"]
    for number in range(4):
        happened = FIRST + timedelta(days=number, hours=9)
        shops.sell("1", happened, happened)
    shops.world.rebuild(FIRST + timedelta(days=5))
    return shops


def test_settled_days_are_read_once_for_all_statements_that_follow(
    shops: Shops, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[date]()

    async def recorded(query: ResolvedQuery, stores: Sequence[StoreQuery], *rest: Any) -> list[StoreData]:
        read.extend(instant(of.timeline.start).date() for of in stores)
        return await fetch(query, stores, *rest)

    with AskingSql(shops.world) as sql:
        sql.rows("select day, net_sales from sales_day")
        monkeypatch.setattr(view_tables, "fetch", recorded)
        shops.sell("1", FIRST + timedelta(days=5), FIRST + timedelta(days=5, hours=1))

        days = [day for day, _ in sql.rows("select day, net_sales from sales_day order by day")]

    assert set(read) == {date(2026, 3, 5)}
    assert days == [date(2026, 3, day) for day in (1, 2, 3, 4, 6)]


def test_a_store_that_is_registered_anew_is_read_anew(shops: Shops) -> None:
    sunday = "select net_sales from sales_day where day = '2026-03-01' and store = '1'"
    with AskingSql(shops.world) as sql:
        assert sql.rows(sunday)
        shops.world.stores |= {"1": Store(id="1", timezone="Pacific/Kiritimati"), "2": Store(id="2", timezone="UTC")}
        with AskingSql(shops.world) as fresh:
            assert sql.rows(sunday) == fresh.rows(sunday)


def test_an_equal_statement_has_the_same_result_until_something_changes(shops: Shops) -> None:
    count = "select count(*) from sales_15m"
    with AskingSql(shops.world) as sql:
        first, again = sql.answer(count), sql.answer(count)
        [(before,)] = sql.rows(count)
        shops.sell("1", FIRST + timedelta(days=5), FIRST + timedelta(days=5, hours=1))
        shops.world.pass_time(FIRST + timedelta(days=5, hours=2))
        changed = sql.answer(count)

    assert again is first
    assert changed.rows == [(before + 1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "select random() from sales_day limit 1",
        "select gen_random_uuid() from sales_day limit 1",
        "with x as (select random() as r from sales_day) select r from x limit 1",
    ],
)
def test_what_is_random_is_made_anew(shops: Shops, statement: str) -> None:
    with AskingSql(shops.world) as sql:
        assert sql.rows(statement) != sql.rows(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "select count(*) from sales_day where day > current_date - 6",
        "select count(*) from sales_15m where start > now() - interval '5 days'",
        "select count(*) from sales_15m where start > localtimestamp - interval '5 days'",
    ],
)
def test_a_statement_that_depends_on_the_time_is_planned_anew(shops: Shops, statement: str) -> None:
    with AskingSql(shops.world) as sql:
        before = sql.rows(statement)
        shops.world.pass_time(FIRST + timedelta(days=8))

        assert (before, sql.rows(statement)) == ([(4,)], [(1,)])


def test_a_statement_is_planned_once(shops: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = list[str]()

    def counted(query: exp.Query, tables: Tables) -> Plan:
        planned.append(query.sql())
        return plan(query, tables)

    monkeypatch.setattr("serving_layer.sql.session.plan", counted)
    with AskingSql(shops.world) as sql:
        for least in (1, 2, 1):
            sql.rows("select count(*) from sales_day where net_sales > $1", least)
            shops.sell("1", FIRST + timedelta(days=5), FIRST + timedelta(days=5, hours=1))
        sql.answer("set timezone = 'Asia/Tokyo'")
        sql.rows("select count(*) from sales_day where net_sales > $1", 1)

    assert len(planned) == 3


def test_results_of_other_callers_zones_tables_and_values_are_not_mixed_up(shops: Shops) -> None:
    with AskingSql(shops.world) as sql:
        assert sql.rows("select count(*) from sales_day as t") == [(4,)]
        assert sql.rows("select count(*) from traffic_day as t") == [(0,)]
        assert sql.rows("select count(*) from sales_day where net_sales > $1", 1) == [(4,)]
        assert sql.rows("select count(*) from sales_day where net_sales > $1", 1_000) == [(0,)]
        assert sql.rows("select count(*) from sales_day as t", tenant="another") == [(0,)]


def test_days_are_split_where_events_still_come() -> None:
    days = [date(2026, 3, day) for day in range(1, 10)]

    found = list(split_at([(days[0], days[4]), (days[6], days[8])], {days[1]}, days[7]))

    assert found == [
        (days[0], days[1], True),
        (days[1], days[2], False),
        (days[2], days[4], True),
        (days[6], days[8], False),
    ]


def test_equal_statements_that_wait_share_a_run_and_each_reads_what_was_there_when_it_was_sent(shops: Shops) -> None:
    runs = 0
    with AskingSql(shops.world) as sql:
        usual = Session._run  # noqa: SLF001 - counts runs

        async def counted(*arguments: Any) -> QueryResult:
            nonlocal runs
            runs += 1
            await asyncio.sleep(0.05)
            return await usual(*arguments)

        async def ask() -> list[int]:
            sessions = [sql.open() for _ in range(10)]
            first = [asyncio.ensure_future(each.execute("select count(*) from sales_day")) for each in sessions[:5]]
            await asyncio.sleep(0.02)
            shops.sell("1", FIRST + timedelta(days=5), FIRST + timedelta(days=5, hours=1))
            then = [asyncio.ensure_future(each.execute("select count(*) from sales_day")) for each in sessions[5:]]
            return [int(str((await each).rows[0][0])) for each in (*first, *then)]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Session, "_run", counted)
            found = sql.run(ask())

    assert found[5:] == [5] * 5
    assert set(found[:5]) <= {4, 5}
    assert runs <= 4  # of each version one that began first, and one that all others waited for


def test_a_run_goes_on_as_long_as_anybody_waits_for_it() -> None:
    async def scenario() -> tuple[list[str], str]:
        shared, ended, may_end = SharedRuns[str](), list[str](), asyncio.Event()

        async def start(*, waited: bool) -> str:
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            return f"waited: {waited}"

        leaves, stays = (asyncio.ensure_future(shared.read("key", start)) for _ in range(2))
        await asyncio.sleep(0.01)
        leaves.cancel()
        await asyncio.wait([leaves])
        may_end.set()
        found = await stays
        may_end.clear()
        alone = asyncio.ensure_future(shared.read("key", start))
        await asyncio.sleep(0.01)
        alone.cancel()
        await asyncio.wait([alone])
        await asyncio.sleep(0.01)
        return ended, found

    assert asyncio.run(scenario()) == (["cancelled"], "waited: False")
