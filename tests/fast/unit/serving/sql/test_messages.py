"""What is wrong with a statement is said as PostgreSQL says it, with the name that was probably meant."""

import re
from collections.abc import Iterator

import pytest

from master_dataset.registry.stores import Store
from serving_layer.sql.statements import COLUMNS, TABLES
from tests.support import World, receipt
from tests.support.world_sql import AskingSql

OWN_WORDS = re.compile(
    r"sqlglot|Token|Binder|Catalog|Candidate|Parser|Line \d|Col: |INT\d+|VARCHAR|_LITERAL|DECIMAL|Referenced|"
    r"Values list|bindings|best candidate|Required keyword|!$|CTE|<class|Error tokenizing|explicit type casts"
)
"""What the parser and DuckDB say of themselves."""


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    world = World(Store(id="1", timezone="UTC"))
    world.receive(receipt("2026-03-27T12:00:00Z", minor=100), "2026-03-27T12:00:01Z")
    with AskingSql(world) as asking:
        yield asking


SAID = {
    # tables and columns
    "select * from sale_day": 'relation "sale_day" does not exist. Did you mean sales_day?',
    "select * from sales": 'relation "sales" does not exist. Did you mean sales_15m, sales_day or sales_hour?',
    "select * from public.storse": 'relation "public.storse" does not exist. Did you mean stores?',
    "select * from xyzzy": "does not exist. `\\d` in psql lists the tables",
    "select * from information_schema.table": "Did you mean tables?",
    "select * from pg_catalog.pg_clas": "Did you mean pg_class?",
    "select * from pg_tabels": "Did you mean pg_tables?",
    "with sold as (select 1) select * from solds": "Did you mean sold?",
    "select * from elsewhere.public.sales_day": 'no database "elsewhere" here',
    "select 'sale_day'::regclass": "Did you mean sales_day?",
    "select net_sale from sales_day": 'column "net_sale" does not exist. Did you mean net_sales?',
    "select s.net_sale from sales_day s": "column s.net_sale does not exist. Did you mean net_sales?",
    "select nothing_like_it from sales_day": "`\\d sales_day` in psql lists the columns",
    "select store from sales_day order by nme": 'column "nme" does not exist',
    "select foo.net_sales from sales_day": 'no entry for the table "foo" in FROM. FROM has sales_day.',
    "select store from sales_day a, stores b": 'column reference "store" is ambiguous. Write a.store or b.store.',
    "select * from sales_day a join stores a on true": '"a" is in FROM more than once',
    "select * from sales_day a join sales_hour b using (day)": (
        'column "day" of USING does not exist in the right table'
    ),
    "with x as (select 1), x as (select 2) select * from x": 'WITH defines "x" more than once',
    "select sysdate": 'column "sysdate" does not exist',
    # grouping
    "select store, sum(net_sales) from sales_day": 'column "store" must appear in the GROUP BY clause',
    "select store from sales_day where sum(net_sales) > 1": "not allowed in WHERE. Filter with HAVING.",
    "select sum(sum(net_sales)) from sales_day": "Aggregate functions cannot be nested.",
    "select store from sales_day group by sum(net_sales)": "not allowed in GROUP BY",
    "select store from sales_day group by 5": "position in GROUP BY is not in the select list, which has 1 column.",
    "select row_number() from sales_day": "lacks OVER",
    "select percentile_cont(0.5) from sales_day": "percentile_cont needs WITHIN GROUP",
    # syntax
    "select * from": "Syntax error at end of input.",
    "select * from sales_day where": "Syntax error at end of input.",
    "select store from sales_day where store = 'a' and": "Syntax error at end of input.",
    "select * from sales_day cross join": "Syntax error at end of input.",
    "select (1": "Syntax error at end of input. A closing bracket may be missing.",
    "select 1)": 'Syntax error at or near ")".',
    "select 1 as select": 'Syntax error at or near "select".',
    "select top 5 * from sales_day": 'Syntax error at or near "5".',
    "with x select * from x": 'Syntax error at or near "select".',
    "select `store` from sales_day": "Names are quoted with double quotes",
    "select 'abc": "A quoted text is not closed",
    'select "abc': "A quoted name is not closed",
    "select $$abc": "A quoted text is not closed",
    "select 1 /* abc": "A comment is not closed",
    "select distinct on (store) from sales_day": "SELECT names no columns.",
    "values (1), (1, 2)": "VALUES lists must all have the same length.",
    "selct * from sales_day": "SELCT is not a statement of this server. Did you mean select?",
    "select store, day from sales_day union select store from stores": "same number of columns",
    "select * from sales_day limit -1": "must not be negative",
    # functions, operators and types
    "select summ(net_sales) from sales_day": "function summ does not exist. Did you mean sum?",
    "select nosuch(1)": "function nosuch does not exist. Most functions of PostgreSQL are there",
    "select date_trunc(day) from sales_day": "function date_trunc has too few arguments",
    "select coalesce()": "function coalesce has too few arguments",
    "select upper(day) from sales_day": "function upper(date) does not exist",
    "select round('a')": "function round(text) does not exist",
    "select store + 1 from sales_day": "operator does not exist: text + integer. Check the types",
    "select 'a' + 'b'": "operator does not exist: text + text",
    "select * from stores where name like 5": "operator does not exist: text LIKE integer",
    "select * from sales_day where day > 5": "type date and integer cannot be compared",
    "select 'x'::nosuchtype": 'type "nosuchtype" does not exist',
    "select cast(1 as money)": 'type "money" does not exist',
    "select to_number('a', '999')": "function to_number is not supported",
    "select * from unnest(1)": "unnest needs an array",
    # values
    "select 'abc'::int": 'Invalid input syntax for type integer: "abc".',
    "select 'abc'::date": "Invalid input syntax for type date: \"abc\". Write such as '2026-11-21'.",
    "select * from sales_day where day = '2026-13-01'": 'date "2026-13-01" is out of range',
    "select * from sales_day where net_sales = 'abc'": 'Invalid input syntax for type numeric: "abc".',
    "select cast('x' as numeric)": 'Invalid input syntax for type numeric: "x".',
    "select 'x'::uuid": 'type uuid: "x"',
    "select 99999999999::int": "99999999999 is out of range for type integer",
    "select 9223372036854775807 + 1::bigint": "out of range for type bigint",
    "select 12345::numeric(3,2)": "12345 is out of range for type numeric(3,2)",
    "select interval '1 foo'": 'unit "foo" is not recognized',
    "select '[' ~ '['": "Invalid regular expression: missing ]",
    "select '{\"a\"'::json": "Invalid input syntax for type json",
    "select (select store from sales_day union all select 'x')": "More than one row is returned by a subquery",
    "select (select store, day from sales_day)": "A subquery has 2 columns instead of 1.",
    # statements of other systems
    "show tables": TABLES,
    "show databases": TABLES,
    "describe sales_day": COLUMNS.format(table="sales_day"),
    "desc traffic_hour": COLUMNS.format(table="traffic_hour"),
    "show columns from stores": COLUMNS.format(table="stores"),
    r"\d": "Commands with a backslash work in psql alone",
    "copy (select 1) to stdout": 'galatea sql --csv "select ..."',
    "copy sales_day to '/tmp/x.csv'": "psql --csv -c",
    "copy stores from stdin": "read-only",
    "show time_zone": "Did you mean timezone?",
    "explain": "EXPLAIN has no statement.",
    "set search_path": "Write `SET name TO value`.",
}


@pytest.mark.parametrize("statement", SAID)
def test_a_message_names_what_is_wrong_and_what_to_do(sql: AskingSql, statement: str) -> None:
    refused = sql.refusal(statement)
    said = f"{refused.message} {refused.hint or ''}"

    assert SAID[statement] in said
    assert not OWN_WORDS.search(refused.message), refused.message
    assert not OWN_WORDS.search(refused.hint or ""), refused.hint


def test_what_hints_say_can_be_asked(sql: AskingSql) -> None:
    assert ("sales_day",) in sql.rows(TABLES)
    assert ("net_sales", "numeric") in sql.rows(COLUMNS.format(table="sales_day"))
    assert ("traffic_15m",) in sql.rows("select distinct table_name from information_schema.columns")
