"""What is asked here and of a PostgreSQL 16 has the same answer, or is refused here by name."""

# ruff: noqa: S608, ISC004, E501 - statements of a test

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest

from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.postgresql import Both, beside_postgresql


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    world = World(Store(id="1", timezone="Europe/Bratislava"))
    world.pass_time("2026-03-06T10:00:00Z")
    with beside_postgresql(world) as connected:
        yield connected


def require_same(both: Both, statement: str, parameters: Sequence[object] | None = None) -> None:
    ours, theirs = both.answers(statement, parameters)

    assert ours == theirs, statement


SALES = (
    "(values ('a', 7::bigint, 2::bigint, 10.10::numeric(18,2), 1.5::float8), ('a', 20, 6, 0.05, 2.5), "
    "('b', 1, null, null, null), ('b', 9007199254740993, 3, 5.00, -1)) as s(store, units, receipts, sales, ratio)"
)
SUMS = [
    f"select sum(units) / sum(receipts) from {SALES}",
    f"select sum(units) / count(*) from {SALES}",
    f"select sum(receipts) / 7, 100 * sum(receipts) / sum(units), sum(receipts) % 4 from {SALES}",
    f"select store, sum(receipts) / sum(sum(receipts)) over () from {SALES} group by store order by 1",
    f"select store, round(100 * sum(receipts) / sum(sum(receipts)) over (), 2) from {SALES} group by store order by 1",
    f"select a / b from (select sum(receipts) a, count(*) b from {SALES}) q",
    f"select a / 2, b / 2, c.a / 2 from (select * from (select sum(receipts) a, count(*) b from {SALES}) q) c",
    f"select x / 2 from (select sum(receipts) from {SALES}) q(x)",
    f"with q as (select store, sum(units) as receipts from {SALES} group by 1) select receipts / 2 from q order by 1",
    f"select receipts / 2, (select sum(receipts) from {SALES}) / 4 from {SALES} order by 1",
    f"select coalesce(sum(receipts), 0) / 2, case when sum(receipts) > 1 then sum(receipts) end / 2 from {SALES}",
    f"select s / n from (select sum(receipts) s, 2 n from {SALES} union all select 1, 3) q order by 1",
    f"with q as (select sum(receipts) a, sum(units) b from {SALES}) select a / b from q",
    f"select sum(units) filter (where store = 'a') / sum(receipts) filter (where store = 'a') from {SALES}",
    f"select sum(receipts) over (partition by store) / 2, sum(receipts) over w / 2 from {SALES} "
    "window w as (order by store) order by 1, 2",
    f"select sum(distinct receipts) / 2, sum(receipts) / nullif(sum(receipts), 0) from {SALES}",
    f"select count(*) / count(receipts), count(*) / 3, max(units) / 2 from {SALES}",
    f"select sum(sales) / 3, sum(ratio) / 3, sum(sales) / sum(receipts), avg(receipts) / 2 from {SALES}",
    f"select sum(units) + 1, -sum(units), sum(units)::bigint, sum(receipts)::int, sum(units)::text from {SALES}",
    "select sum(x) from (values (9223372036854775807), (9223372036854775807)) v(x)",
    "select sum(x) from (values (1), (2)) v(x) where false",
    f"select store, sum(units) from {SALES} group by store having sum(receipts) / 3 > 2.5 order by sum(units) / 7",
]


@pytest.mark.parametrize("statement", SUMS)
def test_a_sum_of_whole_numbers_is_divided_as_a_decimal(both: Both, statement: str) -> None:
    require_same(both, statement)


@pytest.mark.parametrize("place", ["($1,$2)", "($1, $2)", "($2,$1,3)"])
def test_parameters_need_no_space_between_them(both: Both, place: str) -> None:
    require_same(both, f"select count(*) from (values (1), (2), (4)) v(x) where x in {place}", (1, 2))


def test_texts_in_dollars_stay_texts(both: Both) -> None:
    require_same(both, "select $$it's$$ || $a$ $$ $a$ || $a1_$x$a1_$")


SEVEN = Decimal(7)
PARAMETERS: list[tuple[str, Sequence[object]]] = [
    (f"select count(*) from {SALES} where receipts / $1 > 2.5", (Decimal(2),)),
    (f"select count(*) from {SALES} where units / $1 > 2.5", (Decimal(3),)),
    (f"select sum((receipts / $1)::int), sum(receipts) / $1, avg(units / $1) from {SALES}", (Decimal(2),)),
    ("select 7 / $1, $1 / 2, $1::float8, -$1, $1 + 1, $1::text", (SEVEN,)),
    ("select $1 / 2, $1 * $1, round($1, 1), $1 = 7, $1 > 6", (Decimal("7.25"),)),
    ("select $1 * $2", (Decimal(100000000000), Decimal(100000000000))),
    ("select $1, $1 + 1, -$1, 7 - $1, $1 / 2, $1 % 3", (5,)),
    ("select $1, $1 + 1, -$1, 7 - $1, $1 / 2, $1 % 3", (-5,)),
    ("select $1, $1 + 1, -$1, $1 / 2", (5_000_000_000,)),
    ("select $1, $1 / 2, -$1", (1.5,)),
    ("select $1 and true, not $1", (True,)),
    ("select coalesce($1::int4, 3), coalesce($2::date, date '2026-01-01')", (None, None)),
    ("select $1::numeric / 2, $1::int / 2, $2::numeric / 2", (7, "7")),
    ("select $1, date '2026-03-06' - $1, timestamp '2026-03-06' + $1", (timedelta(days=2, hours=3),)),
    ("select $1 - 1, $1 - date '2026-01-01', $1::text", (date(2026, 3, 6),)),
    ("select $1::timestamptz - interval '1 hour'", (datetime(2026, 3, 6, tzinfo=UTC),)),
    ("select round(2.345::numeric(18,2), $1), round(1234.5, $2)", (1, -2)),
    ("select $1::uuid::text", (UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),)),
    ("select date '2026-03-06' = any($1)", ([date(2026, 3, 6), date(2026, 3, 7)],)),
    ("select $1, $1[1]", ([date(2026, 3, 6), None],)),
    ("select $1", ([Decimal("1.5"), Decimal("2.25")],)),
    ("select $1, 2 = any($1)", ([1, 2],)),
    ("select $1, 2.5 = any($1)", ([1.5, 2.5],)),
    ("select $1", ([True, None, False],)),
    ("select $1::text[], 'a' = any($1::text[])", (["a", 'b "c"', None],)),
    ("select $1", ([datetime(2026, 3, 6, 10, tzinfo=UTC)],)),
    ("select x from (values (1), (2), (3)) v(x) order by 1 limit $1 offset $2", (1, 1)),
]


@pytest.mark.parametrize(("statement", "parameters"), PARAMETERS)
def test_a_parameter_has_the_type_that_its_client_says(
    both: Both, statement: str, parameters: Sequence[object]
) -> None:
    require_same(both, statement, parameters)


ARRAYS = [
    f"select array_agg(sales order by sales), array_agg(units order by units) from {SALES}",
    "select array[1.5, 2.5], array[1::bigint, null], array[true], array['a', null], array[1.5::float8]",
    "select array_agg(d) from (values (date '2026-03-06')) v(d)",
    "select array[timestamp '2026-03-06 10:00'], array[timestamptz '2026-03-06 10:00+00']",
    f"select percentile_cont(array[0.5, 0.9]) within group (order by ratio) from {SALES}",
]


@pytest.mark.parametrize("statement", ARRAYS)
@pytest.mark.parametrize("parameters", [None, ()], ids=["text", "prepared"])
def test_an_array_has_elements_of_its_type(both: Both, statement: str, parameters: Sequence[object] | None) -> None:
    require_same(both, statement, parameters)


@pytest.mark.parametrize(
    "expression",
    [
        "'infinity'::timestamptz",
        "'infinity'::timestamp",
        "'-infinity'::date",
        "date '9999-12-31' + 1",
        "date '0001-01-01' - 1",
        "timestamp '0001-01-01 00:00' - interval '1 second'",
        "'294246-01-01'::timestamp",
        "array[date '9999-12-31' + 1]",
    ],
)
def test_a_time_beyond_the_years_1_to_9999_is_refused(both: Both, expression: str) -> None:
    ours, _ = both.answers(f"select {expression}")

    assert ours == "22008"


MERGED = [
    "select coalesce(sum(x), 0.5), greatest(sum(x), 0.25), case when false then sum(x) else 0.125 end from "
    "(values (1)) v(x) where false",
    "select x from (select sum(y) as x from (values (1), (2)) v(y) union all select 2.4) q order by 1",
]


@pytest.mark.parametrize("statement", MERGED)
def test_a_sum_of_whole_numbers_beside_a_decimal_leaves_it_its_fraction(both: Both, statement: str) -> None:
    require_same(both, statement)


INSTANTS = (
    "(values (timestamptz '2026-03-28 12:00+00', timestamptz '2026-03-30 12:00+00', date '2026-03-28'), "
    "('2026-10-24 12:00+00', '2026-10-26 00:00+00', '2026-10-24'), ('2026-03-01 00:00+00', null, null)) as t(a, b, d)"
)
ELAPSED = [
    f"select b - a, a - b, b - a > interval '48 hours', b - a = interval '2 days' from {INSTANTS} order by a",
    f"select max(b) - min(a), extract(epoch from max(b) - min(a)), max(b) - date '2026-10-25' > interval '1 day' from {INSTANTS}",
    f"select x - y from (select max(b) as x, min(a) as y from {INSTANTS}) q",
    f"with q as (select b as x, a as y from {INSTANTS}) select q.x - q.y, x - y as z from q order by 1",
    f"select a - lag(a) over (order by a) from {INSTANTS} order by a",
    f"select a - date_trunc('month', a), b - '2026-01-01', timestamptz '2026-12-01' - a from {INSTANTS} order by a",
    f"select a - interval '1 day', a + interval '1 day' - a, a - (b - a), d - a, a - d from {INSTANTS} order by a",
    f"select d - 1, d - date '2026-01-01', (a at time zone 'UTC') - (b at time zone 'UTC') from {INSTANTS} order by a",
    f"select avg(extract(epoch from b - a)), count(*) filter (where b - a < interval '1 day 23 hours 30 minutes') from {INSTANTS}",
]


@pytest.mark.parametrize("statement", ELAPSED)
@pytest.mark.parametrize("zone", ["Europe/Bratislava", "America/New_York", "UTC"])
def test_between_two_instants_is_the_time_that_passed(both: Both, statement: str, zone: str) -> None:
    both.set_zone(zone)
    try:
        require_same(both, statement)
    finally:
        both.set_zone("UTC")


CASTS = [
    f"select round(ratio::numeric, 4), (ratio / 3)::numeric(20,6), round((sales / 7)::numeric, 4) from {SALES} order by 1",
    f"select round(sum(sales)::numeric / 7, 6), round(avg(receipts)::numeric, 6), sum(units)::numeric / 7 from {SALES}",
    f"select units::numeric / 2, receipts::decimal * 1.19, sales::numeric * sales::numeric from {SALES} order by 1",
    "select 12345678901234567890123.5::numeric, 1e20::numeric, 1e-12::numeric, 1.234567891::numeric, '2.5'::numeric",
    "select 3214567.1::float8::numeric, 1000000000000000::bigint::numeric, 0.1::float8::numeric",
    "select coalesce(7::numeric, 0.5), case when true then 0.123 else 7::numeric end, greatest(1::numeric, 1.5)",
    "select array[1.123456]::numeric[], 5::numeric(4), 1.005::numeric(10,2)",
    "select date '2026-03-06'::varchar(7) = '2026-03', 'abc'::varchar(2), 'abc'::char(2), 'abc'::char, 'abc'::bpchar",
    "select 12345::varchar(3), true::varchar(2), null::varchar(2), 'abc  '::char(3) || 'x', 'abc'::varchar, 'ž€x'::varchar(2)",
    "select cast('abcdef' as character varying(3)), cast('abc' as character(2)) as x group by 2",
    "select 100::float8::text, 1.5::float8::text, 1e20::float8::text, 'nan'::float8::text, '-inf'::float8::text, 2::text",
    "select array[1,2,3]::text, array['a','b c',null,'NULL','q\"x','']::text, array[1.5]::text",
    "select round(7) / 2, ceil(7) / 2, extract(month from date '2026-03-06') / 2, 7 / 2, 7.0 / 2, count(*) / 2",
]


@pytest.mark.parametrize("statement", CASTS)
def test_a_cast_gives_what_it_gives_in_postgresql(both: Both, statement: str) -> None:
    require_same(both, statement)


ERRORS = ["1 / 0", "1 % 0", "1.5 / 0", "1::float8 / 0", "mod(1, 0)", "sum(1) / 0"]


@pytest.mark.parametrize("expression", ERRORS)
def test_an_error_has_the_code_of_postgresql(both: Both, expression: str) -> None:
    require_same(both, f"select {expression}")


DECIMALS = "(values (1.11), (2.22), (3.35)) v(x)"
CALLS = [
    f"select percentile_cont(0.37) within group (order by x), percentile_cont(0.5) within group (order by x desc) from {DECIMALS}",
    "select extract(second from timestamp '2026-03-29 10:00:01.5'), date_part('second', interval '1.25 seconds')",
    "select extract(milliseconds from timestamp '2026-03-29 10:00:01.5'), extract(minute from now()) >= 0",
    "select div(7, 2), div(-7.5, 2), div(7.0, 2), div(-7, 2)",
    "select (1,null) = (1,null), (1,null) = (2,null), (1,2) = (1,2), (1,null) <> (1,null), row(1,2) = row(1,2)",
    "select (1,2) in ((1,2), (3,4)), (1,null) in ((1,2)), (1,2) not in ((1,null)), (1,2) not in ((2,null))",
    "select 1_000, 1_000 + 1, 1_000.5",
    "select round(0.5::float8), round(1.5::float8), round(-2.5::float8), round(2.5), round(7::float8 / 2)",
    "select 9223372036854775808, -9223372036854775808, 99999999999999999999 * 2, 9223372036854775807",
    "select substr('hello',0,2), substr('hello',-1,4), substr('hello',-2), substring('hello' from 2), substring('hello', 2, 0)",
    "select substring('hello' from 0 for 3), substring('hello', x, 2) from (values (0), (1), (5), (9)) v(x) order by x",
    "select format('%s-%s', 'a', 1), format('%I.%L', 'Foo', 'it''s'), format('100%%'), format('%2$s %1$s', 'a', 'b')",
    "select format('%s|%L', null, null), format('%s', x) from (values (1), (2)) v(x) order by 2",
    "select initcap('hello wORLD-foo bar_x o''neil'), initcap('žatec 1abc'), initcap(null)",
    "select to_hex(255), concat(true, 1, null, 'x'), concat(1 > 2)",
    "select array_length(array[]::int[], 1), array_length(array[1,2], 1)",
    "select split_part('abc', '', 1), split_part('abc', '', 2), split_part('a,b', ',', 2), split_part('a,b', ',', -1)",
    "select sqrt(sum(x)), ln(max(x)), substr(max(x)::text, 0), sqrt(sum(x) over ()), div(sum(x), 2) from (values (4)) v(x) group by x",
    "select sqrt(4), ln(1), log(100), log(2, 8), sqrt(null), exp(0)",
    "select date_trunc('months', timestamp '2026-03-29'), date_trunc('qtr', timestamp '2026-03-29')",
    "select date_trunc('decade', timestamp '2026-03-29'), date_trunc('weeks', timestamp '2026-03-29 10:00')",
]
RAISED = [
    "sqrt(-1)",
    "ln(0)",
    "ln(-1)",
    "log(0)",
    "log(2, 0)",
    "substr('hello', 2, -1)",
    "substr('hello', -2, -1)",
    "div(7, 0)",
]


@pytest.mark.parametrize("statement", CALLS)
def test_a_function_gives_what_it_gives_in_postgresql(both: Both, statement: str) -> None:
    require_same(both, statement)


@pytest.mark.parametrize("expression", RAISED)
def test_a_function_fails_as_in_postgresql(both: Both, expression: str) -> None:
    require_same(both, f"select {expression}")


@pytest.mark.parametrize(
    "expression",
    [
        "date_trunc('century', now())",
        "date_trunc('millennium', now())",
        "regexp_matches('foobar', 'o(.)')",
        "printf('%d', 4)",
        "format('%-5s|', 'a')",
        "format(x, 1) from (values ('%s')) v(x)",
    ],
)
def test_what_would_mean_something_else_is_refused_by_name(both: Both, expression: str) -> None:
    ours, _ = both.answers(f"select {expression}")

    assert ours == "0A000"


def test_json_agg_puts_values_into_one_document(both: Both) -> None:
    values = "(values (1, 'b'), (null, 'a'), (3, 'a')) v(x, y)"
    [row] = both.ours.execute(
        "select json_agg(x), json_agg(x order by x desc), jsonb_agg(y order by y) filter (where x > 0), "
        f"json_agg(x) filter (where x > 5), json_agg(json_build_object('y', y)) from {values}"
    ).fetchall()

    assert row == ("[1,null,3]", "[null,3,1]", '["a","b"]', None, '[{"y":"b"},{"y":"a"},{"y":"a"}]')


def test_a_product_with_too_many_digits_says_what_to_cast(both: Both) -> None:
    values = "(values (174.85::numeric(38,18))) v(value)"
    ours, _ = both.answers(f"select value * value from {values}")

    assert ours == "22003"
    require_same(both, f"select sum(value::numeric(20,4) * value::numeric(20,4)) from {values}")


def test_errors_recommend_no_settings_that_cannot_be_set(both: Both) -> None:
    with pytest.raises(psycopg.Error) as refused:
        both.ours.execute("select " + "+".join(["1"] * 1200))

    assert "SET" not in str(refused.value)
    assert "TRY" not in str(refused.value)
