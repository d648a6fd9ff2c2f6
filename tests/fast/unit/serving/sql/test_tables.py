"""What the tables hold, whose rows they are, how much is read of them, and what ends a statement."""

# ruff: noqa: S608 - statements of a test

import asyncio
import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores import GroupVersion, Store, currency
from serving_layer.sql.metrics_table import SPLIT
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.sandbox import Limits
from serving_layer.sql.session import Session, SqlLimits
from tests.fast.unit.serving.test_totals_apart import of_three_currencies
from tests.support import World, receipt
from tests.support.world_sql import AskingSql

CANARY = "canary-of-another-tenant"


def history() -> World:
    """Two stores of one tenant, and one of another whose every text is a canary."""
    groups = (GroupVersion(None, {"region": "north"}), GroupVersion(date(2026, 3, 3), {"region": "south"}))
    world = World(
        Store(id="1", timezone="Europe/Bratislava", name="One", groups=groups),
        Store(id="2", timezone="America/New_York", name="Two"),
        Store(
            id=f"{CANARY}-store",
            timezone="UTC",
            name=CANARY,
            tenant=CANARY,
            currency=currency("KWD"),
            groups=(GroupVersion(None, {"region": CANARY}),),
        ),
    )
    for day in range(1, 6):
        for place, store in enumerate(world.stores):
            at = f"2026-03-0{day}T12:10:00Z"
            number = 10 * day + place
            world.receive(receipt(at, minor=100 * day + place, number=number, store=store, till=f"till-{store}"), at)
        if day == 3:
            world.rebuild("2026-03-03T00:00:00Z")
    world.pass_time("2026-03-06T10:00:00Z")
    return world


@pytest.mark.parametrize("last", ["9999-12-31", "9999-12-31 23:59:59.999999", "9999-12-31 23:59:59+00"])
def test_a_bound_at_the_end_of_the_calendar_is_none(last: str) -> None:
    """BI tools filter so where a range has no end."""
    counted = ("sales_15m where start", "sales_hour where start", "sales_day where day", "alerts where raised_at")
    with AskingSql(history()) as sql:
        for table in (*counted, "receipts where happened_at"):
            name, _, column = table.split()
            [[whole]] = sql.rows(f"select count(*) from {name}")
            assert sql.rows(f"select count(*) from {table} < timestamptz '{last}'") == [(whole,)]
            assert sql.rows(f"select count(*) from {table} between '0001-01-01' and '{last}'") == [(whole,)]
            assert sql.rows(f"select count(*) from {name} where {column} > '{last}'") == [(0,)]


@pytest.mark.parametrize("at", ["1970-01-01T00:00:00Z", "1970-12-31T23:00:00Z"])
def test_an_event_of_the_first_year_breaks_no_statement(at: str) -> None:
    """Of whatever tenant: the clock of a till without a battery begins in 1970."""
    world, other = history(), history()
    for place, store in enumerate(world.stores):
        world.receive(receipt(at, minor=5, number=900 + place, store=store), "2026-03-06T09:00:00Z")
    for each in (world, other):
        each.rebuild("2026-03-06T09:30:00Z")
    with AskingSql(world) as sql, AskingSql(other) as without:
        for table in ("sales_day", "sales_15m", "sales_by_sku_day", "metrics"):
            query = f"select count(*) from {table}"
            for tenant in ("default", CANARY):
                assert sql.rows(query, tenant=tenant) == without.rows(query, tenant=tenant), (table, tenant)


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    with AskingSql(history()) as asking:
        asking.rest.alert_tables.raised("2026-03-02T10:00:00Z", store="1")
        asking.rest.alert_tables.raised("2026-03-02T10:00:00Z", store=f"{CANARY}-store", tenant=CANARY)
        for tenant in ("default", CANARY):
            with ProductSpool() as spool:
                line = {"sku": "1", "title": f"title {tenant}", "category": "Food/Fruit"}
                read_stream(io.BytesIO(json.dumps(line).encode()), spool)
                asking.rest.products.load(tenant, spool, replace=True)
        yield asking


def test_days_are_those_of_the_store_and_say_what_they_rest_on(sql: AskingSql) -> None:
    found = sql.rows(
        "select store, day, currency, net_sales, receipts, final, publication, provisional from sales_day "
        "where day between '2026-03-02' and '2026-03-03' order by day, store"
    )

    assert found == [
        ("1", date(2026, 3, 2), "EUR", Decimal("2.00"), 1, True, 1, False),
        ("2", date(2026, 3, 2), "EUR", Decimal("2.01"), 1, False, 1, True),
        ("1", date(2026, 3, 3), "EUR", Decimal("3.00"), 1, False, 1, True),
        ("2", date(2026, 3, 3), "EUR", Decimal("3.01"), 1, False, 1, True),
    ]


def test_states_that_are_money_are_in_the_major_unit_whatever_they_are_called(sql: AskingSql) -> None:
    of_day = "where store = '1' and day = '2026-03-02'"

    assert sql.rows(f"select basket_value, baskets, avg_basket_value from basket_sizes_day {of_day}") == [
        (Decimal("2.00"), 1, 2.0)
    ]
    assert sql.rows(f"select net_sales, sku_net_sales from sales_by_sku_day {of_day}") == [
        (Decimal("2.00"), Decimal("2.00"))
    ]


def test_windows_and_hours_begin_at_instants(sql: AskingSql) -> None:
    where = "where store = '1' and start >= '2026-03-05' order by 1"

    assert sql.rows(f"select start, net_sales from sales_15m {where}") == [
        (datetime(2026, 3, 5, 12, tzinfo=UTC), Decimal("5.00"))
    ]
    assert sql.rows(f"select start, net_sales from sales_hour {where}") == [
        (datetime(2026, 3, 5, 12, tzinfo=UTC), Decimal("5.00"))
    ]


def test_what_is_remembered_of_a_statement_is_of_its_time_zone_and_shows_nobody_elses_rows(sql: AskingSql) -> None:
    far = sql.open()
    sql.answer("set time zone 'Pacific/Auckland'", session=far)
    since = "select count(*) from sales_15m where store = '1' and start >= '2026-03-06 00:30'"
    for _ in range(2):
        assert sql.rows("select store from alerts") == [("1",)]
        assert sql.rows("select store from alerts", tenant=CANARY) == [(f"{CANARY}-store",)]
        assert sql.rows(since) == [(0,)]
        assert sql.rows(since, session=far) == [(1,)]  # noon of the 5th in UTC is 01:00 there


def test_lists_hold_what_their_routes_list(sql: AskingSql) -> None:
    assert sql.rows("select store, name, timezone from stores order by 1") == [
        ("1", "One", "Europe/Bratislava"),
        ("2", "Two", "America/New_York"),
    ]
    assert sql.rows("select * from store_attributes order by valid_from nulls first") == [
        ("1", "region", "north", None, date(2026, 3, 3)),
        ("1", "region", "south", date(2026, 3, 3), None),
    ]
    assert sql.rows("select sku, title, category, department from products") == [
        ("1", "title default", "Food/Fruit", "Food")
    ]
    [(at, text)] = sql.rows(
        "select happened_at, receipt from receipts where store = '1' and happened_at::date = '2026-03-04'"
    )
    assert (at, json.loads(text)["transaction_id"]) == (datetime(2026, 3, 4, 12, 10, tzinfo=UTC), 40)
    assert sql.rows("select publication, cut from publications order by 1 desc limit 1") == [
        (1, datetime(2026, 3, 3, tzinfo=UTC))
    ]
    assert sql.rows("select store, state from alerts where raised_at >= '2026-03-01'") == [("1", "open")]
    assert sql.rows(
        "select metric, store, value from metrics where metric = 'net_sales' and day = '2026-03-04' order by 2"
    ) == [
        ("net_sales", "1", Decimal("4.00")),
        ("net_sales", "2", Decimal("4.01")),
    ]


def test_groups_of_a_day_are_a_join(sql: AskingSql) -> None:
    statement = """
        select a.value, sum(s.net_sales)
        from sales_day s join store_attributes a on a.store = s.store and a.name = 'region'
            and s.day >= coalesce(a.valid_from, s.day) and s.day < coalesce(a.valid_to, s.day + 1)
        group by 1 order by 1
    """

    assert sql.rows(statement) == [("north", Decimal("3.00")), ("south", Decimal("12.00"))]


def test_no_table_holds_anything_of_another_tenant(sql: AskingSql) -> None:
    tables = sql.sessions.sources.relations({}).tables
    for name in tables:
        shown = str(sql.rows(f"select * from {name}"))
        assert CANARY not in shown, name
        assert CANARY not in str(sql.rows(f"explain select * from {name}")), name
    assert sql.rows("select * from sales_day where store = $1", f"{CANARY}-store") == []
    assert sql.rows("select name from stores", tenant=CANARY) == [(CANARY,)]
    assert sql.rows("select net_sales from sales_day where day = '2026-03-05'", tenant=CANARY) == [(Decimal("5.020"),)]
    assert sql.rows("select count(*) from sales_day", tenant="nobody") == [(0,)]
    assert sql.rows("select count(*) from stores", tenant=None) == [(3,)]


READS = [
    ("select net_sales from sales_day", "columns net_sales"),
    ("select count(*) from sales_day where day = '2026-03-02'", "columns day; from 2026-03-02; to 2026-03-02"),
    ("select store from sales_day where store in ('1', '2') and day > '2026-03-02'", "from 2026-03-02; store 1, 2"),
    ("select store from sales_day where day >= current_date - 7", "from 2026-02-27"),
    ("select store from sales_day where day >= date_trunc('month', current_date)", "from 2026-03-01"),
    ("select store from sales_day where day between $1 and $2", "from 2026-03-02; to 2026-03-04"),
    ("select store from sales_day where day = '2026-03-02' or day = '2026-03-04'", "from 2026-03-02; to 2026-03-04"),
    ("select store from sales_hour where start >= now() - interval '1 day'", "from 2026-03-05 10:00:00+00:00"),
    ("select store from sales_hour where start::date = '2026-03-02'", "from 2026-02-28 00:00:00+00:00; to 2026-03-04"),
    ("select s.day from sales_day s, traffic_day t where s.day = t.day and t.day = '2026-03-02'", "columns day"),
    (
        "select s.store from sales_day s left join traffic_day t on t.day = s.day where s.day = '2026-03-02'",
        "Read traffic_day: columns day; from 2026-03-02; to 2026-03-02",
    ),
    ("select x.day from (select * from sales_day) x where x.day < '2026-03-02'", "to 2026-03-02"),
    (
        "with x as (select day, sum(net_sales) from sales_day group by 1) select * from x where day > '2026-03-04'",
        "from 2026-03-04",
    ),
    ("select metric from metrics where metric = 'net_sales'", "metric net_sales"),
]
UNBOUNDED = [
    "select store from sales_day where day <> '2026-03-02'",
    "select store from sales_day where day = '2026-03-02' or store = '1'",
    "select store from sales_day where not (day = '2026-03-02')",
    "select store from sales_day where day = '2026-03-02' is not true",
    "select * from (select day, lag(net_sales) over (order by day) from sales_day) x where day > '2026-03-02'",
    "select * from (select day from sales_day order by 1 limit 3) x where day > '2026-03-02'",
    "select * from (select max(day) as day from sales_day) x where day > '2026-03-02'",
    "select t.store from stores t left join sales_day s on t.store = '1' and s.store <> '1'",
    "with x as (select * from sales_day) select 1 from x a, x b where a.day = '2026-03-02'",
]


@pytest.mark.parametrize(("statement", "line"), READS)
def test_filters_say_how_much_is_read(sql: AskingSql, statement: str, line: str) -> None:
    parameters = ("2026-03-02", date(2026, 3, 4)) if "$1" in statement else ()
    lines = [text for (text,) in sql.rows(f"explain {statement}", *parameters) if text.startswith("Read ")]

    assert any(line in each for each in lines), lines


@pytest.mark.parametrize("statement", UNBOUNDED)
def test_a_filter_that_does_not_hold_for_all_rows_that_are_needed_is_no_bound(sql: AskingSql, statement: str) -> None:
    lines = [text for (text,) in sql.rows(f"explain {statement}") if text.startswith("Read sales_day")]

    assert lines
    assert not any(word in each for each in lines for word in ("from ", "to ", "store 1"))


def test_statements_of_a_transaction_read_one_snapshot() -> None:
    world = history()
    count = "select count(*), sum(receipts), max(publication) from sales_day where store = '1'"
    with AskingSql(world) as sql:
        session = sql.open()
        sql.answer("begin", session=session)
        [before] = sql.rows(count, session=session)
        now = sql.rows("select now()", session=session)
        world.begin_micro_batch()
        world.receive(receipt("2026-03-06T11:00:00Z", minor=700, number=99), "2026-03-06T11:00:00Z")
        world.rebuild("2026-03-06T11:30:00Z")

        assert sql.rows(count, session=session) == [before]
        assert sql.rows("select sum(net_sales) from sales_15m where store = '1'", session=session) == [
            (Decimal("15.00"),)
        ]
        assert sql.rows("select max(publication) from publications", session=session) == [(1,)]
        assert sql.rows("select now()", session=session) == now
        assert sql.rows(count) == [(6, 6, 2)]
        sql.answer("commit", session=session)
        assert sql.rows(count, session=session) == [(6, 6, 2)]


def test_a_transaction_that_failed_answers_nothing_until_it_ends(sql: AskingSql) -> None:
    session = sql.open()
    sql.answer("begin", session=session)
    sql.answer("savepoint a", session=session)

    assert sql.refusal("select nothing", session=session).code == "42703"
    assert str(session.transaction) == "failed"
    assert sql.refusal("select 1", session=session).code == "25P02"
    assert sql.answer("rollback to savepoint a", session=session).tag == "ROLLBACK"
    assert sql.rows("select 1", session=session) == [(1,)]
    assert sql.refusal("select nothing", session=session).code == "42703"
    assert sql.answer("commit", session=session).tag == "ROLLBACK"
    assert str(session.transaction) == "idle"
    assert sql.refusal("savepoint a", session=session).code == "25P01"


def limited(limits: SqlLimits) -> AskingSql:
    return AskingSql(World(Store(id="1", timezone="UTC")), limits)


CARTESIAN = "select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b where a + b < 0"


def test_a_statement_that_takes_too_long_is_ended_by_name() -> None:
    with limited(SqlLimits(seconds=0.3)) as sql:
        sandboxes = sql.sessions.limits.statements
        refused = [sql.refusal(CARTESIAN) for _ in range(sandboxes + 1)]  # none is left occupied

        assert {each.code for each in refused} == {"57014"}
        assert all("0.3 seconds" in each.message and each.hint for each in refused)


def test_a_session_may_ask_for_less_time(sql: AskingSql) -> None:
    session = sql.open()
    sql.answer("set statement_timeout = '100ms'", session=session)

    assert sql.refusal(CARTESIAN, session=session).code == "57014"


def test_a_statement_is_ended_when_its_client_asks() -> None:
    async def asked(session: Session) -> SqlStateError:
        running = asyncio.ensure_future(session.execute(CARTESIAN))
        await asyncio.sleep(0.2)
        session.interrupt()
        with pytest.raises(SqlStateError) as refused:
            await running
        return refused.value

    with limited(SqlLimits()) as sql:
        session = sql.open()
        assert sql.run(asked(session)).code == "57014"
        assert sql.rows("select 1", session=session) == [(1,)]
        session.interrupt()
        assert sql.rows("select 2", session=session) == [(2,)]


def test_a_statement_that_needs_too_much_memory_is_ended_by_name() -> None:
    with limited(SqlLimits(sandbox=Limits(memory_mb=32))) as sql:
        refused = sql.refusal("select length(string_agg(md5(n::text), '')) from generate_series(1, 20000000) g(n)")

        assert refused.code == "53200"
        assert refused.hint
        assert sql.rows("select 1") == [(1,)]


def test_a_result_that_is_too_large_in_memory_is_ended_before_it_is_complete() -> None:
    with limited(SqlLimits(sandbox=Limits(result_bytes=1_000_000))) as sql:
        assert len(sql.rows("select n from generate_series(1, 100000) g(n)")) == 100_000
        refused = sql.refusal(f"select {', '.join(['n + 0'] * 100)} from generate_series(1, 100000) g(n)")

        assert (refused.code, refused.message) == ("54000", "The result has more than 1,000,000 bytes.")


def test_a_result_with_too_many_rows_is_refused_by_name() -> None:
    with limited(SqlLimits(sandbox=Limits(rows=1000))) as sql:
        refused = sql.refusal("select * from generate_series(1, 1001)")

        assert (refused.code, refused.hint is not None) == ("54000", True)
        assert len(sql.rows("select * from generate_series(1, 1000)")) == 1000


def test_a_statement_that_reads_too_many_rows_says_what_to_filter() -> None:
    with AskingSql(history(), SqlLimits(source_rows=8)) as sql:
        refused = sql.refusal("select * from sales_day")

        assert (refused.code, "sales_day" in refused.message) == ("54000", True)
        assert "day >= current_date" in str(refused.hint)
        assert len(sql.rows("select * from sales_day where day = '2026-03-04'")) == 2


def test_long_and_deep_statements_are_refused_by_name(sql: AskingSql) -> None:
    assert sql.refusal("select " + "(" * 300 + "1" + ")" * 300).code == "54001"
    assert sql.refusal("select '" + "x" * 300_000 + "'").code == "54000"
    assert sql.refusal("select 1" + " + 1" * 40_000).code in ("54000", "54001")
    assert sql.refusal("select 1" + " + 1" * 489).code == "54001"  # its tree has more levels than can be read
    assert sql.refusal("select '\0'").code == "22021"


def test_amounts_have_the_currency_that_they_were_received_in() -> None:
    world = World(Store(id="1", timezone="UTC"))
    world.receive(receipt("2026-03-27T12:00:00Z", minor=1000), "2026-03-27T12:00:00Z")
    world.rebuild("2026-03-30T00:00:00Z")
    world.stores["1"] = Store(id="1", timezone="UTC", currency=currency("JPY"))

    with AskingSql(world) as sql:
        rows = sql.rows("select value, currency from metrics where metric in ('net_sales', 'total_transactions_count')")

    assert rows == [(Decimal(10), "EUR"), (Decimal(1), None)]


def test_amounts_of_several_currencies_are_not_added_up() -> None:
    with AskingSql(of_three_currencies().world) as sql:
        refused = sql.refusal("select value from metrics where metric = 'net_sales'")
        counted = sql.rows("select value from metrics where metric = 'total_transactions_count'")
        apart = sql.rows("select currency, net_sales from sales_day order by currency")

    assert (refused.message, refused.hint) == ("Store `1` has amounts in CZK and EUR and JPY.", SPLIT)
    assert counted == [(Decimal(3),)]
    assert apart == [("CZK", Decimal(20)), ("EUR", Decimal(10)), ("JPY", Decimal(30))]
