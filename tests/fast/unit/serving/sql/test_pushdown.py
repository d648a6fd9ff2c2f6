"""What a statement finds does not depend on how much is read for it."""

# ruff: noqa: S608 - statements of a test

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from master_dataset.registry.stores import GroupVersion, Store
from serving_layer.sql.pushdown import Constant, Pushdown
from serving_layer.sql.statements import Query, read
from tests.support import World, receipt
from tests.support.pushdown import ReadingEverything
from tests.support.world_sql import AskingSql

FIRST = datetime(2026, 3, 26, tzinfo=UTC)


def history() -> World:
    """Three stores with receipts of eight days, around a change of summer time, and corrections of a publication."""
    groups = (GroupVersion(None, {"region": "north"}), GroupVersion(FIRST.date(), {"region": "south"}))
    world = World(
        Store(id="0", timezone="Europe/Bratislava", name="Null", groups=groups),
        Store(id="1", timezone="America/New_York", name="One"),
        Store(id="00", timezone="Asia/Tokyo", name="Two"),
    )
    for number in range(72):
        at = FIRST + timedelta(hours=2.5 * number)
        id_ = list(world.stores)[number % 3]
        world.receive(receipt(at.isoformat(), minor=100 + number, number=number, store=id_), at)
        if number in (20, 40):
            world.receive(receipt((at - timedelta(days=1)).isoformat(), minor=7, number=100 + number, store=id_), at)
            world.rebuild((at + timedelta(hours=1)).isoformat())
    world.pass_time("2026-04-03T10:00:00Z")
    return world


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[AskingSql, AskingSql]]:
    """One that reads what a statement needs, and one that reads everything."""
    world = history()
    with AskingSql(world) as sql, ReadingEverything(world) as everything:
        yield sql, everything


WITH_X = "with x as (select * from sales_day)"
SAME = [
    # A WITH query that is read in brackets or otherwise where filters are not followed.
    f"{WITH_X} select (select count(*) from x where day = '2026-03-29'), "
    "(select count(*) from (stores s join x on x.store = s.store))",
    f"{WITH_X} select count(*) from x where day = '2026-03-29' "
    "union all select count(*) from (stores s join x on x.store = s.store)",
    f"{WITH_X} select (select count(*) from x where day = '2026-03-29'), "
    "(select count(*) from stores s left join (x join stores t on t.store = x.store) on x.store = s.store)",
    f"{WITH_X} select (select count(*) from x where day = '2026-03-29'), "
    "(select count(*) from (x cross join (values (1)) v(i)))",
    f"{WITH_X} select (select count(*) from x where day = '2026-03-29'), "
    "(select count(*) from ((select * from stores) s join x on x.store = s.store))",
    f"{WITH_X} select (select count(*) from x where day = '2026-03-29'), "
    "(select count(*) from stores s join stores t join x on x.store = t.store on t.store = s.store)",
    f"{WITH_X} select count(*) from x where day = '2026-03-29' union all select 1 order by (select count(*) from x)",
    f"{WITH_X} select * from (with x as (select store from x) (select store from x) limit 90) q, x where x.day = '2026-03-29'",
    # Units.
    *(
        f"select day from sales_day where date_trunc('{unit}', day) = date_trunc('{unit}', date '2026-03-29')"
        for unit in ("MONTHS", "Mon", "years", "weeks", "century", "millennium", "decade", "quarter", "day")
    ),
    "select start from sales_hour where date_trunc('months', start) = '2026-03-01'",
    # Ends of ranges.
    "select day from sales_day where day between symmetric '2026-03-30' and '2026-03-27'",
    "select day from sales_day where day between symmetric '2026-03-27' and '2026-03-30'",
    "select day from sales_day where day between '2026-03-30' and '2026-03-27'",
    "select day from sales_day where day not between symmetric '2026-03-30' and '2026-03-27'",
    # Whole numbers, also as texts.
    *(
        f"select count(*) from corrections where publication {of}"
        for of in ("= '01'", "= ' 1'", "in ('01', '99')", "in ('02', 1)", "= any('{+1,3}'::bigint[])", "= 1 + 1", "= 2.0")
    ),
    "select store from sales_day where store in ('0', '9')",
    "select store from sales_day where store = 0",
    "select s.store from stores s join corrections c on c.publication = s.store where s.store = '00'",
    # Other types than the column has.
    "select day from sales_day where day in ('2026-03-29 23:00-05', timestamptz '2026-03-30')",
    "select day from sales_day where day between '2026-03-29 05:00+14' and now()",
    "select day from (select day from sales_day union all select start from sales_hour) q "
    "where day <= '2026-03-29 23:00-05'",
    "select store from (select store from stores union all select day from sales_day) q where store <= '2026-03-3'",
    "select s.day from sales_day s join sales_hour h on h.start = s.day where h.start <= '2026-03-29 23:00-05'",
    # Columns of the same name, and stars that change columns.
    "select * from (select store as day, * from sales_day) q where day = '0'",
    "select day from (select * replace (day + 1 as day) from sales_day) q where day = '2026-03-29'",
    "select * from (select day from sales_day union all by name select store, day from sales_day) q where day = '2026-03-29'",
    # Joins that are not as others are.
    "select count(*) from sales_day s anti join stores t on s.day = '2026-03-29'",
    "select h.start, d.day from sales_hour h asof join sales_day d on h.store = d.store and h.start >= d.day "
    "where d.day <= '2026-03-28'",
    # The names that tables have in DuckDB.
    "with galatea_table_0 as (select 1 as a) select count(*) from sales_day, galatea_table_0",
    'with "GALATEA_TABLE_0" as (select 1 as a), galatea_table__1 as (select 2) select count(*) from sales_day',
]


@pytest.mark.parametrize("statement", SAME)
def test_a_statement_finds_what_it_would_find_if_everything_were_read(
    servers: tuple[AskingSql, AskingSql], statement: str
) -> None:
    sql, everything = servers

    assert Counter(sql.rows(statement)) == Counter(everything.rows(statement))
