"""Texts that are made to keep the server busy are refused, or read, with work in proportion to their lengths.

Most would take minutes to years if they were read word by word again and again.
"""

import struct
from contextlib import suppress
from decimal import Decimal

import duckdb
import pytest
from sqlglot import exp

from master_dataset.registry.stores import Store
from serving_layer.sql import conversation, server
from serving_layer.sql.error_messages import execution_error
from serving_layer.sql.plan import plan
from serving_layer.sql.results import MOST_ITEMS, SqlStateError, SqlType
from serving_layer.sql.semantics import as_in_postgresql
from serving_layer.sql.statements import MOST_COLUMNS, Query, read, split
from serving_layer.sql.suggestions import did_you_mean
from serving_layer.sql.translate import array_of, duckdb_sql, with_parameters
from serving_layer.sql.types import BINARY_FORMAT, TEXT_FORMAT, decode
from tests.support import World
from tests.support.world_sql import AskingSql

BLANKS = " " * 100_000
DOUBLING = [
    ("date(", "1", ")"),
    ("timestamp(", "1", ")"),
    ("decimal(1, ", "1", ")"),
    ("decimal((", "1", "))"),
    ("time(", "1", ")"),
    ("character varying(", "1", ")"),
    ("double precision(", "1", ")"),
    ("struct(", "1", ")"),
    ("array[", "1", "]"),
    ("date[", "1", "]"),
    ("null[", "1", "]"),
    ("1::x[", "1", "]"),
    ("date(abs(", "1", "))"),
    ("cast(date(", "1", ") as int)"),
    ("date(case when ", "1", " then 1 end)"),
    ("date((select ", "1", "))"),
    ("date(interval ", "1", " day)"),
    ("(select 1 limit ", "1", ")"),
    ("array[date(", "1", ")]"),
    ("struct(timestamp(", "1", "))"),
]


@pytest.mark.parametrize(("opened", "inner", "closed"), DOUBLING)
def test_nested_words_that_are_read_in_two_ways_are_refused(opened: str, inner: str, closed: str) -> None:
    with pytest.raises(SqlStateError) as refused:
        read(f"select {opened * 16}{inner}{closed * 16}")

    assert refused.value.code == "54001"
    assert refused.value.hint


@pytest.mark.parametrize(("opened", "inner", "closed"), DOUBLING[:-2])
def test_a_few_that_are_nested_are_read(opened: str, inner: str, closed: str) -> None:
    assert isinstance(read(f"select {opened * 4}{inner}{closed * 4}"), Query)


def test_elements_of_arrays_are_counted_for_each_statement() -> None:
    assert isinstance(read(f"select x{'[1]' * 100}"), Query)
    assert isinstance(read(f"select array[array[1]]{', array[array[1]]' * 200}"), Query)
    with pytest.raises(SqlStateError) as refused:
        read(f"select x{'[1]' * 6_000}")

    assert refused.value.code == "54001"


@pytest.mark.parametrize(
    "statement",
    [
        *("select m....", "select (a).[1]", "select m..[1]", "select *.", "select f(a..)"),
        *("(a[(", "select a[-", "select a[not", '""', "''", '" "'),
    ],
)
def test_what_is_incomplete_is_a_syntax_error(statement: str) -> None:
    with pytest.raises(SqlStateError) as refused:
        read(statement)

    assert refused.value.code == "42601"


def test_the_text_of_a_statement_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    with suppress(SqlStateError):
        read("with as (update stores set name = 'a secret' returning *) select 1")

    assert caplog.text == ""


def test_empty_brackets_of_an_array_are_refused() -> None:
    with pytest.raises(SqlStateError) as refused:
        read("select x[][1]")

    assert refused.value.code == "42601"


@pytest.mark.parametrize(
    "text", [f"{{{BLANKS}{{}}", f"{{a{BLANKS}{{}}", f'{{"a"{BLANKS}{{}}', '{"' + "\\" * 99_999 + "}"]
)
def test_arrays_with_many_blanks_are_refused(text: str) -> None:
    with pytest.raises(SqlStateError) as of_cast:
        array_of(text)
    with pytest.raises(SqlStateError) as of_parameter:
        decode(SqlType.TEXT_ARRAY, TEXT_FORMAT, text.encode())

    assert (of_cast.value.code, of_parameter.value.code) == ("22P02", "22P02")


def test_arrays_have_so_many_items() -> None:
    most, more = "{" + ",".join("1" * MOST_ITEMS) + "}", "{" + ",".join("1" * (MOST_ITEMS + 1)) + "}"
    item = struct.pack("!iq", 8, 1)
    binary = struct.pack("!iiIii", 1, 0, 20, MOST_ITEMS + 1, 1) + item * (MOST_ITEMS + 1)

    assert decode(SqlType.INT8_ARRAY, TEXT_FORMAT, most.encode()) == [1] * MOST_ITEMS
    assert len(array_of(most).expressions) == MOST_ITEMS
    for value, format_ in ((more.encode(), TEXT_FORMAT), (binary, BINARY_FORMAT)):
        with pytest.raises(SqlStateError) as refused:
            decode(SqlType.INT8_ARRAY, format_, value)
        assert refused.value.code == "54000"
    with pytest.raises(SqlStateError, match="20,000 items"):
        array_of(more)


def test_arrays_of_arrays_are_no_binary_parameters() -> None:
    nested = struct.pack("!iiI", 0, 0, 25)
    for _ in range(2_000):
        nested = struct.pack("!iiIii", 1, 0, 1009, 1, 1) + struct.pack("!i", len(nested)) + nested

    with pytest.raises(SqlStateError) as refused:
        decode(SqlType.TEXT_ARRAY, BINARY_FORMAT, nested)

    assert refused.value.code == "22P03"


@pytest.mark.parametrize("text", ["deallocate x{}y", "deallocate {}!", "{}x", "deallocate prepare{}!", "discard{}!"])
def test_what_is_deallocated_is_found_in_any_text(text: str) -> None:
    assert conversation._DEALLOCATE.match(text.format(" " * 900_000)) is None  # noqa: SLF001 - as long as messages are


@pytest.mark.parametrize(
    "text",
    [
        "select $1 " + "/* " * 60_000,
        "select $1 " + " ".join(f"$a{number}$" for number in range(19_000)),
        "select $1 " + "$a" * 90_000,
        "select $1 " + "e'\\" * 60_000,
        "select $1 " + "'" * 180_001,
        'select $1 "' + "x" * 180_000,
    ],
    ids=["comments", "tags", "names", "escapes", "quotes", "quoted"],
)
def test_texts_that_are_not_closed_are_read_once(text: str) -> None:
    with suppress(SqlStateError):
        assert len(split(text)) == 1


def test_a_query_has_so_many_columns() -> None:
    assert isinstance(read(f"select t.*{', t.*' * (MOST_COLUMNS - 1)}"), Query)
    with pytest.raises(SqlStateError) as refused:
        read(f"select t.*{', t.*' * MOST_COLUMNS}")

    assert refused.value.code == "54011"


def test_the_tables_of_a_query_are_listed_as_often_however_many_stars_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    listed, find_all = list[type[exp.Expr]](), exp.Expr.find_all

    def counted(node: exp.Expr, *kinds: type[exp.Expr], bfs: bool = True) -> object:
        listed.extend(kinds)
        return find_all(node, *kinds, bfs=bfs)

    monkeypatch.setattr(exp.Expr, "find_all", counted)
    counts = []
    for stars in (1, 100):
        listed.clear()
        statement = read(f"select t.*{', t.*' * stars}")
        assert isinstance(statement, Query)
        plan(statement.expression, {})
        counts.append(len(listed))

    assert counts[0] == counts[1]


DIGITS = "9" * 5_000


@pytest.mark.parametrize(
    "statement",
    [
        f"select {DIGITS}",
        f"select ${DIGITS}",
        f"select substring('a', {DIGITS})",
        f"select format('%{DIGITS}$s', 'a')",
        f"select 1 / {DIGITS}",
        f"table stores limit {DIGITS}",
        "select ²",
    ],
    ids=["constant", "parameter", "substring", "format", "division", "limit", "superscript"],
)
def test_a_number_of_very_many_digits_is_refused_with_a_sentence(statement: str) -> None:
    with AskingSql(World(Store(id="1", timezone="UTC"))) as sql:
        refused = sql.refusal(statement)

    assert refused.code != "XX000"
    assert len(refused.message) < 500


def test_stores_with_more_decimals_than_their_columns_are_rounded_to_even() -> None:
    store = Store(id="1", timezone="UTC", floor_m2=Decimal("812.125"), conversion_target=Decimal("33.33335"))
    with AskingSql(World(store)) as sql:
        assert sql.rows("select floor_m2, conversion_target from stores") == [(Decimal("812.12"), Decimal("33.3334"))]


def test_options_of_a_login_are_read_once() -> None:
    assert server._OPTION.findall("--a" * 300_000) == []  # noqa: SLF001 - longer than a login may be
    assert server._OPTION.findall(r"-c a.b=1 --c-d=x\ y -cE=2") == [("a.b", "1"), ("c-d", r"x\ y"), ("E", "2")]  # noqa: SLF001


def test_what_is_put_in_a_long_list_is_put_without_a_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exp.Expr, "replace", lambda *_: pytest.fail("goes through the whole list"))
    statement = read("select 1 in ($1, $1, $1)")
    assert isinstance(statement, Query)

    assert duckdb_sql(with_parameters(statement.expression, [2], [SqlType.INT8])).count("CAST(2 AS BIGINT)") == 3


def test_messages_that_hold_a_text_of_the_statement_are_not_read_to_their_ends() -> None:
    said = "Conversion Error: Could not convert string '" + 'Table "a Use ' * 20_000
    unknown = execution_error(duckdb.ConversionException(said))

    assert unknown.code == "22P02"
    assert len(unknown.message) < 5_000


def test_no_name_is_suggested_for_a_very_long_one() -> None:
    names = ["ab" * 50_000, "ab" * 49_999 + "a"]

    assert did_you_mean("ab" * 50_001, names, "none") == "none"
    assert did_you_mean("storez", [*names, "stores"], "none") == "Did you mean stores?"


@pytest.mark.parametrize(("first", "link"), [("sum(1)", " / sum(1)"), ("now()", " - now()"), ("'a'", "::varchar(3)")])
def test_chains_of_what_is_changed_have_so_many_links(first: str, link: str) -> None:

    def changed(links: int) -> exp.Query:
        statement = read(f"select {first}{link * links}")
        assert isinstance(statement, Query)
        return as_in_postgresql(statement.expression, lambda *_: None)

    assert isinstance(changed(90), exp.Select)
    for many in (400, 2_500):
        with pytest.raises(SqlStateError) as refused:
            changed(many)
        assert refused.value.code == "54001"


def test_long_lists_of_conditions_are_not_nested() -> None:
    assert isinstance(
        read(f"select 1{' union all select 1' * 2_000} where true{' and (true or false)' * 1_500}"), Query
    )
