"""Cursors fetch the rows of a query in parts, as those of PostgreSQL do, and end with their transaction."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from serving_layer.sql.sandbox import Limits
from serving_layer.sql.session import Session, SqlLimits
from tests.support import World, receipt
from tests.support.sql_server import running_server
from tests.support.world_sql import AskingSql

FIVE = "select n from generate_series(1, 5) g(n)"


def world() -> World:
    found = World(Store(id="1", timezone="UTC"))
    found.receive(receipt("2026-03-27T12:00:00Z", minor=100), "2026-03-27T12:00:01Z")
    return found


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    with AskingSql(world()) as asking:
        yield asking


@pytest.fixture
def session(sql: AskingSql) -> Session:
    session = sql.open()
    sql.answer("begin", session=session)
    return session


FETCHED: Sequence[tuple[str, Sequence[int]]] = [
    ("fetch c", [1]),
    ("fetch next from c", [2]),
    ("fetch 2 from c", [3, 4]),
    ("fetch forward 0 in c", [4]),
    ("fetch prior c", [3]),
    ("fetch forward all from c", [4, 5]),
    ("fetch c", []),
    ("fetch relative 0 from c", []),
    ("fetch backward 2 from c", [5, 4]),
    ("fetch first from c", [1]),
    ("fetch prior from c", []),
    ("fetch all c", [1, 2, 3, 4, 5]),
    ("fetch last c", [5]),
    ("fetch absolute 3 from c", [3]),
    ("fetch absolute -2 from c", [4]),
    ("fetch absolute 9 from c", []),
    ("fetch backward 1 from c", [5]),
    ("fetch relative -3 from c", [2]),
    ("fetch -1 from c", [1]),
    ("fetch backward -3 from c", [2, 3, 4]),
    ("fetch backward all from c", [3, 2, 1]),
    ("fetch absolute 0 from c", []),
    ("fetch forward from c", [1]),
    ("fetch backward from c", []),
    ("fetch forward 999999999999999999999999 from c", [1, 2, 3, 4, 5]),
]


def test_rows_are_fetched_in_every_direction(sql: AskingSql, session: Session) -> None:
    assert sql.answer(f"declare c scroll cursor for {FIVE}", session=session).tag == "DECLARE CURSOR"

    for statement, expected in FETCHED:
        found = sql.answer(statement, session=session)
        assert [n for (n,) in found.rows] == expected, statement
        assert found.tag == f"FETCH {len(expected)}", statement
    assert sql.answer("move backward 2 from c", session=session).tag == "MOVE 2"
    assert sql.answer("move first from c", session=session).columns is None
    assert sql.rows("fetch c", session=session) == [(2,)]
    assert sql.answer("close c", session=session).tag == "CLOSE CURSOR"
    assert sql.refusal("fetch c", session=session).code == "34000"


def test_a_cursor_without_scroll_goes_forward_only(sql: AskingSql, session: Session) -> None:
    sql.answer(f"declare c no scroll cursor for {FIVE}", session=session)
    assert sql.rows("fetch 3 from c", session=session) == [(1,), (2,), (3,)]
    assert sql.rows("fetch absolute 4 from c", session=session) == [(4,)]

    refused = sql.refusal("fetch prior from c", session=session)

    assert (refused.code, "SCROLL" in str(refused.hint)) == ("55000", True)


def test_a_cursor_reads_tables_with_parameters_and_is_of_the_snapshot_of_its_transaction(
    sql: AskingSql, session: Session
) -> None:
    statement = 'declare "Sales Of" cursor for select store, net_sales from sales_day where store = $1'
    prepared = sql.run(session.prepare(statement, ()))
    sql.answer(statement, "1", session=session)

    assert (len(prepared.parameters), prepared.columns) == (1, None)
    assert [each.name for each in session.cursor_columns("Sales Of") or ()] == ["store", "net_sales"]
    assert session.cursor_columns("sales of") is None
    fetch = sql.run(session.prepare('fetch 10 from "Sales Of"', ()))
    assert [each.name for each in fetch.columns or ()] == ["store", "net_sales"]
    assert [row[0] for row in sql.rows('fetch 10 from "Sales Of"', session=session)] == ["1"]
    cursors = "select name, is_holdable, is_scrollable from pg_catalog.pg_cursors"
    assert sql.rows(cursors, session=session) == [("Sales Of", False, True)]


def test_a_cursor_ends_with_its_transaction_unless_it_is_held(sql: AskingSql) -> None:
    session = sql.open()
    refused = sql.refusal(f"declare c cursor for {FIVE}", session=session)
    assert (refused.code, "BEGIN" in str(refused.hint)) == ("25P01", True)

    sql.answer("begin", session=session)
    sql.answer(f"declare short cursor for {FIVE}", session=session)
    sql.answer(f"declare held cursor with hold for {FIVE}", session=session)
    sql.answer("commit", session=session)
    assert sql.refusal("fetch short", session=session).code == "34000"
    assert sql.rows("fetch held", session=session) == [(1,)]

    sql.answer("begin", session=session)
    sql.answer(f"declare undone cursor with hold for {FIVE}", session=session)
    assert sql.refusal("fetch nothing", session=session).code == "34000"
    assert sql.refusal("fetch held", session=session).code == "25P02"
    sql.answer("commit", session=session)
    assert sql.refusal("fetch undone", session=session).code == "34000"
    assert sql.rows("fetch held", session=session) == [(2,)]
    assert sql.answer("discard all", session=session).tag == "DISCARD ALL"
    assert sql.refusal("fetch held", session=session).code == "34000"


def test_cursors_are_bounded_and_their_names_are_their_own(sql: AskingSql, session: Session) -> None:
    sql.answer(f"declare c cursor for {FIVE}", session=session)
    assert sql.refusal(f"declare c cursor for {FIVE}", session=session).code == "42P03"
    with AskingSql(world(), SqlLimits(sandbox=Limits(rows=12))) as few:
        own = few.open()
        for name in ("a", "b"):
            few.answer(f"declare {name} cursor with hold for {FIVE}", session=own)
        refused = few.refusal(f"declare d cursor with hold for {FIVE}", session=own)
        assert (refused.code, "12 rows" in refused.message) == ("54000", True)
        assert few.answer("close all", session=own).tag == "CLOSE CURSOR ALL"
        few.answer(f"declare d cursor with hold for {FIVE}", session=own)


REFUSED = {
    "declare c cursor for delete from stores": "42501",
    "declare c cursor for select * from read_csv('/etc/passwd')": "42501",
    "declare c cursor for select 1 for update": "42501",
    "declare c cursor with hold for explain select 1": "0A000",
    "declare c binary cursor for select 1": "0A000",
    "declare c cursor": "42601",
    "declare c for select 1": "42601",
    "declare": "42601",
    "fetch": "42601",
    "fetch 1.5 from c": "42601",
    "fetch absolute from c": "42601",
    "move some from c": "42601",
    "close": "42601",
    "close a, b": "42601",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_no_cursor_over_a_query_is_refused_by_name(sql: AskingSql, session: Session, statement: str) -> None:
    refused = sql.refusal(statement, session=session)

    assert refused.code == REFUSED[statement], refused.message
    assert refused.hint


def test_named_cursors_of_psycopg_iterate_scroll_and_close() -> None:
    with AskingSql(world()) as engine, running_server(sessions=engine.sessions.open) as server:
        key = server.keys.make("default")
        with server.connect("default", key, autocommit=False) as connection:
            with connection.cursor("numbers", scrollable=True) as cursor:
                cursor.itersize = 2
                cursor.execute("select n, n * 2 as twice from generate_series(1, %s) g(n)", (5,))
                assert [each.name for each in cursor.description or ()] == ["n", "twice"]
                assert cursor.fetchmany(2) == [(1, 2), (2, 4)]
                assert list(cursor) == [(3, 6), (4, 8), (5, 10)]
                cursor.scroll(0, mode="absolute")
                assert cursor.fetchone() == (1, 2)
                assert cursor.fetchall() == [(n, 2 * n) for n in range(2, 6)]
            with connection.cursor("never executed"):
                pass
            binary: Any = connection.cursor("in binary", withhold=True)
            binary.execute("select store, net_sales from sales_day", binary=True)
            connection.commit()
            assert [row[0] for row in binary.fetchall()] == ["1"]
            binary.close()
            assert connection.execute("select count(*) from pg_cursors").fetchone() == (0,)
