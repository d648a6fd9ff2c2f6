"""Results that connections hold are bounded together, and those of one tenant leave room for others."""

import gc
from collections.abc import Awaitable

import pyarrow as pa
import pytest

from master_dataset.registry.stores import Store
from serving_layer.sql.conversation import Conversation, KeyLostError
from serving_layer.sql.protocol import Bind, Message, Parse, Query, Sync
from serving_layer.sql.results import QueryResult, SqlStateError
from serving_layer.sql.sandbox import _python_bytes
from serving_layer.sql.session import Session, SqlLimits
from tests.support import World
from tests.support.world_sql import AskingSql

LARGE = "select repeat('x', 100) || n from generate_series(1, 1000) g(n)"
SMALL = "select 1"
HELD = SqlLimits(held_bytes=1_000_000)
"""Room for three of the large results of one tenant, and as many of others."""


def asking() -> AskingSql:
    return AskingSql(World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", tenant="other")), HELD)


def test_cursors_of_one_tenant_take_at_most_half_and_what_is_closed_is_free_again() -> None:
    with asking() as sql:
        sessions = [sql.open() for _ in range(4)]
        for session in sessions[:3]:
            sql.answer(f"declare held cursor with hold for {LARGE}", session=session)

        refused = sql.refusal(f"declare held cursor with hold for {LARGE}", session=sessions[3])
        assert (refused.code, "Open results" in refused.message) == ("53200", True)
        assert refused.hint
        assert sql.rows(SMALL, session=sessions[3]) == [(1,)]
        assert len(sql.rows(LARGE, tenant="other")) == 1000

        sessions[0].close()
        assert len(sql.rows(LARGE, session=sessions[3])) == 1000


def test_results_of_all_tenants_are_bounded_together() -> None:
    with asking() as sql:
        held = [
            sql.rows(LARGE, tenant=tenant) for tenant in ("default", "default", "default", "other", "other", "other")
        ]

        assert sql.refusal(LARGE, tenant="third").code == "53200"
        del held[0]
        assert len(sql.rows(LARGE, tenant="third")) == 1000


def test_a_refused_result_is_free_at_once() -> None:
    gc.disable()
    try:
        with asking() as sql:
            for _ in range(3):
                assert sql.refusal(LARGE.replace("1000", "10000")).code == "53200"
            assert len(sql.rows(LARGE)) == 1000
    finally:
        gc.enable()


def test_rows_that_were_fetched_count_after_their_cursor_is_closed() -> None:
    with asking() as sql:
        held = []
        for _ in range(3):
            sql.answer("begin")
            sql.answer(f"declare c cursor for {LARGE}")
            held.append(sql.rows("fetch all from c"))
            sql.answer("close c")
            sql.answer("commit")

        assert sql.refusal(LARGE).code == "53200"
        held.clear()
        assert len(sql.rows(LARGE)) == 1000


class Talk:
    """One connection. Its errors have codes. `valid_for`: how often its key is still valid; less than 0: always."""

    def __init__(self, sql: AskingSql, session: Session) -> None:
        self._sql, self.written = sql, bytearray()
        self.valid_for = -1
        self._talk = Conversation(session, self._write, self._authorize, self._run)

    def say(self, message: Message) -> bytes:
        self.written.clear()
        self._sql.run(self._talk.answer(message))
        return bytes(self.written)

    async def _write(self, data: bytes) -> None:
        self.written.extend(data)

    async def _authorize(self) -> None:
        if self.valid_for == 0:
            raise KeyLostError("28P01", "The key is no longer valid.")
        self.valid_for -= 1

    async def _run(self, work: Awaitable[QueryResult]) -> QueryResult:
        return await work


def test_parameters_of_portals_that_are_never_run_count() -> None:
    with asking() as sql:
        talk = Talk(sql, sql.open())
        talk.say(Query("begin"))
        talk.say(Parse("s", "select length($1::text)", ()))
        answers = [talk.say(Bind(f"p{n}", "s", (), (b"x" * 50_000,), ())) for n in range(3)]

        assert [b"53200" in each for each in answers] == [False, False, True]
        assert sql.rows(SMALL, tenant="other") == [(1,)]
        talk.say(Query("rollback"))
        del talk
        gc.collect()
        assert len(sql.rows(LARGE)) == 1000


def test_lists_of_types_and_formats_count() -> None:
    with asking() as sql:
        talk = Talk(sql, sql.open())
        typed = [talk.say(Parse(f"s{n}", "select 1", (20,) * 5_000)) for n in range(3)]
        talk.say(Sync())
        talk.say(Query("begin"))
        talk.say(Parse("t", "select 1", ()))
        bound = talk.say(Bind("p", "t", (), (), (0,) * 5_000))

        assert [b"53200" in each for each in typed] == [False, False, True]
        assert b"53200" in bound


def test_the_text_of_a_cursor_counts() -> None:
    with asking() as sql:
        session, text = sql.open(), "x" * 40_000
        answers = [
            _code(sql, f"declare c{n} cursor with hold for select 1 /* \N{GRINNING FACE}{text} */", session)
            for n in range(4)
        ]

        assert answers == ["", "", "", "53200"]


def _code(sql: AskingSql, statement: str, session: Session) -> str:
    try:
        sql.answer(statement, session=session)
    except SqlStateError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    "message",
    [
        Parse("n" * 201, "select 1", ()),
        Bind("n" * 201, "", (), (), ()),
        Query(f'savepoint "{"n" * 201}"'),
        Query(f'declare "{"n" * 201}" cursor for select 1'),
    ],
)
def test_names_of_what_a_connection_keeps_are_short(message: Message) -> None:
    with asking() as sql:
        talk = Talk(sql, sql.open())
        talk.say(Query("begin"))
        talk.say(Parse("", "select 1", ()))

        assert b"42622" in talk.say(message)


def test_the_key_is_asked_for_before_each_statement_of_a_message() -> None:
    with asking() as sql:
        talk = Talk(sql, sql.open())
        talk.valid_for = 2

        with pytest.raises(KeyLostError):
            talk.say(Query("select 1; select 2; select 3; select 4"))

        assert [b"SELECT 1" in talk.written, talk.written.count(b"SELECT 1")] == [True, 2]


def test_texts_of_prepared_statements_of_all_connections_count_as_wide_as_they_are() -> None:
    with asking() as sql:
        answers = []
        talks = [Talk(sql, sql.open()) for _ in range(4)]
        for number, talk in enumerate(talks):
            wide = "'" + "y" * 20_000 + "\N{GRINNING FACE}'"
            answers.append(talk.say(Parse("s", f"select length({wide}) + {number}", ())))

        assert [b"53200" in each for each in answers] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "times"), [("x" * 100, 1), ("é" * 50, 1), ("x" * 98 + "ł", 2), ("x" * 96 + "\N{GRINNING FACE}", 4)]
)
def test_one_wide_character_makes_a_text_wide(text: str, times: int) -> None:
    texts = pa.array([text] * 10)

    assert _python_bytes(texts) == times * texts.nbytes
    assert _python_bytes(pa.array([[text]])) >= 4 * 100
    assert _python_bytes(pa.array([], pa.string())) == 0
    assert _python_bytes(pa.array([None, None], pa.string())) < 100
