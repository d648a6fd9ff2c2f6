"""What statements of PostgreSQL mean is what they mean here, also where DuckDB means something else."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from serving_layer.sql.results import SqlType
from tests.support import World
from tests.support.world_sql import AskingSql

NOW = "2026-03-06T10:00:00Z"


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    world = World(Store(id="1", timezone="Europe/Bratislava"))
    world.pass_time(NOW)
    with AskingSql(world) as asking:
        yield asking


VALUES: list[tuple[str, Any]] = [
    ("5 / 2", 2),
    ("-5 / 2", -2),
    ("5 / 2.0", 2.5),
    ("5 % 3", 2),
    ("2.5::int", 3),
    ("1.005::numeric(10,2)", Decimal("1.01")),
    ("'1.50'::numeric(10,2)::text", "1.50"),
    ("round(2.345, 2)", Decimal("2.35")),
    ("2 ^ 10", 1024.0),
    ("date '2026-01-05' - date '2026-01-01'", 4),
    ("date '2026-01-05' + 1", date(2026, 1, 6)),
    ("(date '2026-01-31' + interval '1 month')::date", date(2026, 2, 28)),
    ("extract(year from date '2026-03-01')", 2026),
    ("extract(dow from date '2026-03-01')", 0),
    ("extract(isodow from date '2026-03-01')", 7),
    ("extract(epoch from timestamptz '1970-01-02 00:00+00')", 86400),
    ("date_part('month', date '2026-03-01')", 3),
    ("date_trunc('week', timestamptz '2026-03-06 10:00+00')", datetime(2026, 3, 2, tzinfo=UTC)),
    ("date_trunc('month', date '2026-03-06')::date", date(2026, 3, 1)),
    ("now()", datetime(2026, 3, 6, 10, tzinfo=UTC)),
    ("current_timestamp", datetime(2026, 3, 6, 10, tzinfo=UTC)),
    ("current_date", date(2026, 3, 6)),
    ("age(timestamp '2026-03-01')", "5 days"),
    ("current_date - age(timestamp '2026-03-01') = timestamp '2026-03-01'", True),
    ("(current_date - interval '7 days')::date", date(2026, 2, 27)),
    ("now() at time zone 'Europe/Bratislava'", datetime(2026, 3, 6, 11)),  # noqa: DTZ001 - it has none
    ("timestamptz '2026-03-06 11:00+01' = timestamptz '2026-03-06 10:00Z'", True),
    ("to_char(date '2026-03-06', 'YYYY-MM-DD')", "2026-03-06"),
    ("to_char(timestamp '2026-03-06 09:05:07', 'HH24:MI:SS')", "09:05:07"),
    ("to_char(date '2026-03-06', 'DD Mon YYYY \"at\" HH12:MI AM')", "06 Mar 2026 at 12:00 AM"),
    ("to_char(date '2026-03-06', 'Dy')", "Fri"),
    ("to_date('06.03.2026', 'DD.MM.YYYY')", date(2026, 3, 6)),
    ("to_timestamp('2026-03-06 10:00:00', 'YYYY-MM-DD HH24:MI:SS')", datetime(2026, 3, 6, 10, tzinfo=UTC)),
    ("to_timestamp(86400)", datetime(1970, 1, 2, tzinfo=UTC)),
    ("'Abc' ilike 'aB_'", True),
    ("'abc' ~ 'b'", True),
    ("'abc' ~* 'B'", True),
    ("'abc' !~ 'B'", True),
    ("'a%c' like 'a\\%c'", True),
    ("'it''s' || E'\\n' || $$x$$", "it's\nx"),
    ("concat('a', null, 'b')", "ab"),
    ("'a' || null", None),
    ("coalesce(null, 'x')", "x"),
    ("nullif(1, 1)", None),
    ("greatest(1, null, 3)", 3),
    ("split_part('a/b/c', '/', 2)", "b"),
    ("left('abc', 2) || right('abc', 1)", "abc"),
    ("initcap('north west')", "North West"),
    ("position('b' in 'abc')", 2),
    ("substring('abcdef' from 2 for 3)", "bcd"),
    ("length('ä')", 1),
    ("regexp_replace('a1b2', '[0-9]', '', 'g')", "ab"),
    ("'{a,\"b c\"}'::text[]", ["a", "b c"]),
    ("(array['x','y'])[1]", "x"),
    ("'b' = any(array['a','b'])", True),
    ("'c' <> all('{a,b}'::text[])", True),
    ("array_length(array[1,2,3], 1)", 3),
    ("case when 1 > 2 then 'a' else 'b' end", "b"),
    ("'{\"a\": {\"b\": 1}}'::json -> 'a' ->> 'b'", "1"),
    ("1 is distinct from null", True),
    ("interval '1 day 02:00:00'", "1 day 02:00:00"),
    ("version()", "PostgreSQL 16.0 (Galatea)"),
    ("current_database() || '.' || current_schema()", "galatea.public"),
    ("current_user", "default"),
    ("current_setting('server_version')", "16.0"),
    ("pg_catalog.format_type(1700, ((10 << 16) | 2) + 4)", "numeric(10,2)"),
    ("'stores'::regclass::oid = (select oid from pg_class where relname = 'stores')", True),
    ("has_table_privilege('stores', 'SELECT')", True),
    ("has_table_privilege('stores', 'INSERT')", False),
    ("pg_catalog.array_to_string(array['a','b'], ',')", "a,b"),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_an_expression_has_the_value_that_it_has_in_postgresql(sql: AskingSql, expression: str, value: object) -> None:
    [(found,)] = sql.rows(f"select {expression}")

    assert found == value


# ruff: noqa: S608 - statements of a test
SET = "(values (1, 'a'), (null, 'b'), (3, 'a')) as t(n, s)"
ROWS: list[tuple[str, list[tuple[Any, ...]]]] = [
    (f"select n from {SET} order by n", [(1,), (3,), (None,)]),
    (f"select n from {SET} order by n desc", [(None,), (3,), (1,)]),
    (f"select n from {SET} order by n desc nulls last", [(3,), (1,), (None,)]),
    (f"select s, sum(n), count(*) from {SET} group by 1 order by 1", [("a", 4, 2), ("b", None, 1)]),
    (f"select sum(n) filter (where s = 'a'), avg(n), max(s) from {SET}", [(4, 2.0, "b")]),
    (f"select string_agg(s, '-' order by s desc) from {SET}", [("b-a-a",)]),
    (f"select array_agg(s order by s) from {SET}", [(["a", "a", "b"],)]),
    (f"select percentile_cont(0.5) within group (order by n) from {SET}", [(2.0,)]),
    (f"select percentile_disc(0.5) within group (order by n) from {SET}", [(1,)]),
    (f"select distinct on (s) s, n from {SET} order by s, n desc nulls last", [("a", 3), ("b", None)]),
    (f"select s, count(*) from {SET} group by rollup (s) order by 2, 1", [("b", 1), ("a", 2), (None, 3)]),
    (f"select n, row_number() over (order by n) from {SET} order by 2", [(1, 1), (3, 2), (None, 3)]),
    (f"select lag(n) over (order by n) from {SET} order by n", [(None,), (1,), (3,)]),
    ("select * from generate_series(1, 3) as g(n)", [(1,), (2,), (3,)]),
    (
        "select d::date from generate_series('2026-01-30'::date, '2026-02-01'::date, '1 day') as g(d)",
        [(date(2026, 1, 30),), (date(2026, 1, 31),), (date(2026, 2, 1),)],
    ),
    ("with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select n from r", [(1,), (2,), (3,)]),
    ("select n from unnest(array[2, 1]) as u(n) order by 1 limit 1 offset 1", [(2,)]),
    ("values (1, 'a'), (2, 'b')", [(1, "a"), (2, "b")]),
    ("select * from (values (1)) v limit all", [(1,)]),
    ("select 1 union select 1 union all select 2 order by 1", [(1,), (2,)]),
    ("select 1 intersect select 2", []),
    ("table publications", [(0, datetime(1970, 1, 1, tzinfo=UTC), None, None, None, False, None)]),
]


@pytest.mark.parametrize(("statement", "rows"), ROWS)
def test_a_query_has_the_rows_that_it_has_in_postgresql(
    sql: AskingSql, statement: str, rows: list[tuple[Any, ...]]
) -> None:
    assert list(sql.rows(statement)) == rows


def test_a_cast_that_cannot_be_done_is_an_error_and_not_null(sql: AskingSql) -> None:
    refused = sql.refusal("select 'x'::int")

    assert refused.code == "22P02"


@pytest.mark.parametrize("format_", ["Day", "Month", "WW", "D", "Q", "MON", "FM999.00", "J"])
def test_a_format_that_would_mean_something_else_is_refused(sql: AskingSql, format_: str) -> None:
    assert sql.refusal(f"select to_char(now(), '{format_}')").code == "0A000"


def test_columns_have_the_names_and_types_of_postgresql(sql: AskingSql) -> None:
    statement = (
        "select 1, 'x', count(*), sum(n), now(), n::text, max(d)::date, 1.5, pg_catalog.version(), "
        "case when true then 1 end, (select 2 as two), n + 1 from (values (1, date '2026-01-01')) v(n, d) group by n"
    )
    columns = sql.answer(statement).columns or ()

    names = [
        "?column?",
        "?column?",
        "count",
        "sum",
        "now",
        "n",
        "max",
        "?column?",
        "version",
        "case",
        "two",
        "?column?",
    ]
    assert [each.name for each in columns] == names
    assert [each.type for each in columns][:8] == [
        SqlType.INT4,
        SqlType.TEXT,
        SqlType.INT8,
        SqlType.NUMERIC,
        SqlType.TIMESTAMPTZ,
        SqlType.TEXT,
        SqlType.DATE,
        SqlType.NUMERIC,
    ]


def test_parameters_are_values_and_never_text_of_the_statement(sql: AskingSql) -> None:
    evil = "'; drop table stores; --"

    assert sql.rows("select $1, $2::int + 1, $1", evil, 5) == [(evil, 6, evil)]
    assert sql.rows("select store from stores where store = $1", evil) == []
    assert sql.rows("select store from stores where store = any($1)", ["1", evil]) == [("1",)]
    assert sql.rows("select store from stores where store = any($1::text[])", '{1,"a b"}') == [("1",)]
    assert sql.rows("select $1::date + 1, $2, $3", "2026-01-01", Decimal("-1.50"), None) == [
        (date(2026, 1, 2), Decimal("-1.50"), None)
    ]
    assert sql.refusal("select $2", 1).code == "42P02"


def test_a_statement_is_described_without_being_run(sql: AskingSql) -> None:
    statement = "select day, net_sales, $2::int from sales_day where store = $1 and day >= $3 limit $4"
    prepared = sql.run(sql.open().prepare(statement, (SqlType.UNKNOWN,)))

    assert prepared.parameters == [SqlType.TEXT, SqlType.INT4, SqlType.DATE, SqlType.INT8]
    assert [(each.name, each.type, each.scale) for each in prepared.columns or ()] == [
        ("day", SqlType.DATE, None),
        ("net_sales", SqlType.NUMERIC, 2),
        ("int4", SqlType.INT4, None),
    ]


def test_the_time_zone_of_a_session_says_which_days_instants_are_in(sql: AskingSql) -> None:
    session = sql.open()
    sql.answer("set time zone 'America/Los_Angeles'", session=session)

    [row] = sql.rows(
        "select timestamptz '2026-03-06 10:00Z'::date, date_trunc('day', timestamptz '2026-03-06 03:00Z'), "
        "current_setting('timezone')",
        session=session,
    )

    assert row == (date(2026, 3, 6), datetime(2026, 3, 5, 8, tzinfo=UTC), "America/Los_Angeles")
    assert session.zone.key == "America/Los_Angeles"
    assert sql.rows("show timezone") == [("UTC",)]


SETTINGS = [
    ("set extra_float_digits = 3", "show extra_float_digits", "3"),
    ("set application_name to 'Metabase'", "show application_name", "Metabase"),
    ("set search_path to public, pg_catalog", "show search_path", "public, pg_catalog"),
    ("set session datestyle = 'ISO, MDY'", "show datestyle", "ISO, MDY"),
    ("set names 'utf8'", "show client_encoding", "UTF8"),
    ("set timezone to -3", "show timezone", "Etc/GMT+3"),
    ("reset all", "show application_name", ""),
    ("discard all", "show timezone", "UTC"),
    ("deallocate all", "show transaction isolation level", "repeatable read"),
    ("set session characteristics as transaction isolation level read committed", "show server_encoding", "UTF8"),
]


@pytest.mark.parametrize(("change", "show", "value"), SETTINGS)
def test_settings_that_clients_send_are_kept_and_shown(sql: AskingSql, change: str, show: str, value: str) -> None:
    session = sql.open()
    sql.answer(change, session=session)

    assert sql.rows(show, session=session) == [(value,)]


def test_a_text_is_split_into_statements_at_the_semicolons_between_them(sql: AskingSql) -> None:
    session = sql.open()

    assert session.split("select 1; select ';', $$;$$ -- ;\n; /* x */ ;") == ["select 1", "select ';', $$;$$ -- ;"]
    assert session.split(" -- nothing") == []
