"""What a statement finds does not depend on how much is read for it."""

# ruff: noqa: E501, ISC004, S608 - statements of a test

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from serving_layer.sql.constants import MOST_EVALUATED, Constant
from serving_layer.sql.pushdown import Bounds, Pushdown
from serving_layer.sql.statements import Query, read
from serving_layer.sql.table import DATE, INSTANT, TEXT, WHOLE
from tests.support.pushdown import ReadingEverything, history
from tests.support.world_sql import AskingSql


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[AskingSql, AskingSql]]:
    """One that reads what a statement needs, and one that reads everything."""
    world = history()
    with AskingSql(world) as sql, ReadingEverything(world) as everything:
        yield sql, everything


WITH_X = "with x as (select * from sales_day)"
DAYS = "select day, store, net_sales from sales_day"
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
    # Set operations of which only some rows are kept.
    *(
        f"select * from ({of}) x where day = '2026-03-29'"
        for of in (
            f"{DAYS} union all {DAYS} order by day limit 3",
            f"{DAYS} union all {DAYS} order by day offset 5",
            f"({DAYS}) union all ({DAYS}) order by day fetch first 3 rows only",
            f"{DAYS} union {DAYS} order by day, store limit 3",
            f"{DAYS} except {DAYS} where store = '0' order by day limit 2",
            f"{DAYS} intersect {DAYS} order by day, store limit 2",
        )
    ),
    f"with x as ({DAYS} union all {DAYS} order by day limit 3) select * from x where day = '2026-03-29'",
    f"with x as ({DAYS} union {DAYS} order by day desc, store limit 3) select count(*) from x where day <= '2026-03-29'",
    # Units.
    *(
        f"select day from sales_day where date_trunc('{unit}', day) = date_trunc('{unit}', date '2026-03-29')"
        for unit in ("MONTHS", "Mon", "years", "weeks", "decade", "decades", "quarter", "day")
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
        for of in (
            "= '01'",
            "= ' 1'",
            "in ('01', '99')",
            "in ('02', 1)",
            "= any('{+1,3}'::bigint[])",
            "= 1 + 1",
            "= 2.0",
        )
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


BOUNDS = [
    ("select store from sales_day where date_trunc('months', day) = '2026-03-01'", "from 2026-01-28; to 2026-04-02"),
    (
        "select day from sales_day where day between symmetric '2026-03-30' and '2026-03-27'",
        "from 2026-03-27; to 2026-03-30",
    ),
    ("select view from corrections where publication in ('03', ' 4', 5, '+6')", "publication 3, 4, 5, 6"),
    ("select view from corrections where publication = any('{7}'::bigint[])", "publication 7"),
    ("select view from corrections where publication = 1 + 1", "publication 2"),
    ("select store from sales_day where store in ('a' || 'b', lower('C'))", "store ab, c"),
    ("select store from sales_day where store = any(array['a', 'b']::text[])", "store a, b"),
    (
        "select 1 from (select * from sales_day) s join stores t using (store) where t.store = '1'",
        "Read sales_day: columns store, day",
    ),
    (
        "select 1 from (select store, day from sales_day union all select store, day from traffic_day) u where day > '2026-03-29'",
        "Read traffic_day: columns store, day; from 2026-03-29",
    ),
    (
        "select start from sales_hour where start in ("
        + ", ".join(f"'2026-03-{day:02} 10:00+02'" for day in range(1, 31))
        + ")",
        "from 2026-02-26 00:00:00+00:00; to 2026-04-02 00:00:00+00:00",
    ),
]
UNBOUNDED = [
    "select view from corrections where publication in ('3', 4.0)",
    "select store from sales_day where store in ('0', 1)",
    "select store from sales_day where store = gen_random_uuid()::text",
    "with x as (select * from sales_day) select 1 from x where day = '2026-03-29' order by (select count(*) from x)",
]


@pytest.mark.parametrize(("statement", "line"), BOUNDS)
def test_filters_are_bounds_whatever_their_spelling(
    servers: tuple[AskingSql, AskingSql], statement: str, line: str
) -> None:
    lines = [text for (text,) in servers[0].rows(f"explain {statement}") if text.startswith("Read ")]

    assert any(line in each for each in lines), lines


@pytest.mark.parametrize("statement", UNBOUNDED)
def test_what_may_mean_something_else_is_no_bound(servers: tuple[AskingSql, AskingSql], statement: str) -> None:
    lines = [text for (text,) in servers[0].rows(f"explain {statement}") if text.startswith("Read ")]

    assert lines
    assert not any(word in each for each in lines for word in ("; from ", "; to ", "; store ", "; publication "))


def _pushed_down(statement: str) -> tuple[Sequence[Bounds], int]:
    """The bounds of a table `t`, and how many constants DuckDB would evaluate."""
    calls = list[object]()

    def evaluate(expression: object) -> Constant:
        calls.append(expression)
        return Constant()

    parsed = read(statement)
    assert isinstance(parsed, Query)
    columns = {"store": TEXT, "day": DATE, "start": INSTANT, "publication": WHOLE}
    found = Pushdown(evaluate, lambda node: columns if node.name == "t" else None).bounds(parsed.expression)
    return list(found.values()), len(calls)


def test_a_unit_that_is_not_known_is_no_bound() -> None:
    assert _pushed_down("select 1 from t where date_trunc('fortnight', day) = '2026-03-01'")[0] == [{}]
    assert _pushed_down("select 1 from t where date_trunc('week', day) = '2026-03-01'")[0] != [{}]


@pytest.mark.parametrize(
    ("value", "column", "most_calls"),
    [
        ("'{0}'", "store", 0),
        ("'{0}'", "publication", 0),
        ("{0}", "publication", 0),
        ("'2026-03-{1:02}'", "day", 0),
        ("'2026-03-{1:02} 10:00+01'", "start", 0),
        ("date '2026-03-{1:02}'", "start", 0),
        ("'2026-3-{1}'", "start", 0),
        ("{0} + 1", "publication", MOST_EVALUATED),
    ],
)
def test_thousands_of_values_are_not_evaluated_one_by_one(value: str, column: str, most_calls: int) -> None:
    listed = ", ".join(value.format(number, 1 + number % 28) for number in range(4_900))
    _, calls = _pushed_down(f"select 1 from t where {column} in ({listed})")

    assert calls <= most_calls


@pytest.mark.parametrize(
    "statement",
    [
        "select 1 from t where " + " or ".join(["store = '0'"] * 3_000),
        "select 1 from t where " + " and ".join(["store = '0'"] * 3_000),
        "select store from (" + " union all ".join(["select store from t"] * 1_500) + ") q where store = '0'",
        "with x as (select store from t) select 1 from x where store = '0' or store in "
        + " or store in ".join(["(select store from x)"] * 1_000),
    ],
)
def test_long_chains_are_followed(statement: str) -> None:
    _, calls = _pushed_down(statement)

    assert calls == 0


def test_what_is_nested_too_deep_for_bounds_is_refused_by_name(
    servers: tuple[AskingSql, AskingSql], monkeypatch: pytest.MonkeyPatch
) -> None:
    def bounds(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(Pushdown, "bounds", bounds)

    assert servers[0].refusal("select 'nested' from sales_day where day = '2026-03-29'").code == "54001"
