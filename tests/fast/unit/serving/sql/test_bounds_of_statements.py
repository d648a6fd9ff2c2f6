"""What statements may use: memory for texts that are made from a number, and time for constants."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from deploy.services.sql import await_stuck
from serving_layer.sql.database_process import DatabaseProcess
from serving_layer.sql.error_messages import stream_error
from serving_layer.sql.plan import Plan
from serving_layer.sql.results import MOST_ITEMS, SqlStateError
from serving_layer.sql.sandbox import Limits, Sandbox
from serving_layer.sql.session import SqlLimits
from tests.support import World
from tests.support.world_sql import AskingSql

STUCK = """
import asyncio, os, time
from datetime import UTC, datetime
from unittest.mock import Mock
from deploy.services import sql
from serving_layer.sql import session

session.STUCK_SECONDS = 0.2

async def run():
    sessions = session.Sessions(Mock(), lambda: datetime.now(UTC))
    statement = asyncio.ensure_future(sessions.in_thread(lambda: time.sleep(3600), lambda: None))
    await asyncio.sleep(0.1)
    statement.cancel()
    await sql._until(asyncio.Event(), sessions)

try:
    asyncio.run(run())
except RuntimeError as error:
    print(error, flush=True)
os._exit(3)
"""
"""As `Process.main` ends it."""
PATIENCE_SECONDS = 20.0


def many(items: int) -> str:
    return f"(select array_agg(n) from generate_series(1, {items}) a(n))"  # noqa: S608 - a number


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    with AskingSql(World()) as asking:
        yield asking


@pytest.mark.parametrize(
    "expression",
    ["repeat('x', 10000001)", "repeat('abcde', 2000001)", "lpad('x', 2000000000, 'y')", "rpad('x', 10000001, 'y')"],
)
def test_no_function_makes_a_text_of_any_length(sql: AskingSql, expression: str) -> None:
    refused = sql.refusal(f"select length({expression})")

    assert (refused.code, bool(refused.hint)) == ("54000", True)


def test_texts_of_usual_lengths_are_those_of_postgresql(sql: AskingSql) -> None:
    made = "select repeat('ab', 2), repeat(null, 3), repeat('ab', -1), lpad('7', 3, '0'), rpad('7', 3, 'xy')"

    assert sql.rows(made) == [("abab", None, "", "007", "7xy")]


def test_the_arrays_of_a_row_have_so_many_items_and_no_more(sql: AskingSql) -> None:
    """A row is encoded as a whole, while every other connection waits."""
    half = MOST_ITEMS // 2

    [(one, two, nothing)] = sql.rows(f"select {many(half)}, {many(half)}, null::integer[]")
    refused = sql.refusal(f"select {many(half)}, {many(half + 1)}")

    assert (len(one), len(two), nothing) == (half, half, None)
    assert (refused.code, bool(refused.hint)) == ("54000", True)


def test_rows_are_the_same_however_many_values_are_converted_at_once(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT range, range(range % 5), 'x' FROM range(5000)"
    expected = list(sandbox.query(query).rows)
    monkeypatch.setattr("serving_layer.sql.sandbox.VALUES_AT_ONCE", 7)

    assert list(sandbox.query(query).rows) == expected
    assert len(expected) == 5000


def test_a_thread_that_does_not_end_when_it_is_interrupted_calls_for_another_process(
    sql: AskingSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving_layer.sql.session.STUCK_SECONDS", 0.2)
    leave = threading.Event()

    async def stick() -> bool:
        stuck = asyncio.ensure_future(sql.sessions.in_thread(leave.wait, lambda: None))
        await asyncio.sleep(0.05)
        stuck.cancel()
        await asyncio.sleep(0.05)
        was_set = sql.sessions.stuck.is_set()
        with pytest.raises(RuntimeError, match="has not ended"):
            await asyncio.wait_for(await_stuck(sql.sessions), PATIENCE_SECONDS)
        leave.set()
        await asyncio.wait([stuck])
        sql.sessions.stuck.clear()
        return was_set

    assert sql.run(stick()) is False


def test_a_process_ends_although_a_statement_cannot_be_ended() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stdout.strip()) == (3, "a statement that was interrupted has not ended for 60 s")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT len(range(400000000))",
        (
            "WITH a AS (SELECT repeat('x', 10000000) t), b AS (SELECT t || t || t || t || t || t || t || t t FROM a),"
            "c AS (SELECT t || t || t || t || t || t || t || t t FROM b), d AS (SELECT t || t || t || t t FROM c) "
            "SELECT length(t) FROM d"
        ),
    ],
)
def test_a_database_refuses_what_would_take_its_machine(sandbox: Sandbox, statement: str) -> None:
    with pytest.raises(SqlStateError) as refused:
        sandbox.query(statement)

    assert refused.value.code == "53200"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    found = Sandbox("UTC", Limits())
    yield found
    found.close()


def interrupted(sandbox: Sandbox, work: Callable[[], object]) -> SqlStateError:
    """The error of what is interrupted again and again until it ends."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(work)
        while not running.done():
            sandbox.interrupt()
            time.sleep(0.001)
    with pytest.raises(SqlStateError) as refused:
        running.result()
    return refused.value


def test_a_constant_that_takes_long_is_interrupted(sandbox: Sandbox) -> None:
    expression = "(SELECT count(*) FROM range(100000000000))"

    assert interrupted(sandbox, lambda: sandbox.constant(expression)).code == "57014"


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("CAST(CASE WHEN range > 9000 THEN 'a' ELSE '1' END AS integer)", "22P02"),
        ("1 // (range - 9000)", "22012"),
        ("CAST(range * 250000 AS integer)", "22003"),
    ],
)
def test_an_error_after_the_first_rows_is_one_of_the_statement(sandbox: Sandbox, column: str, code: str) -> None:
    with pytest.raises(SqlStateError) as refused:
        sandbox.query(f"SELECT {column} FROM range(10000)")  # noqa: S608 - of this table

    assert refused.value.code == code


def test_rows_that_take_long_are_interrupted() -> None:
    sandbox = Sandbox("UTC", Limits(rows=10**9))

    assert interrupted(sandbox, lambda: sandbox.query("SELECT range FROM range(100000000000)")).code == "57014"


def test_an_interruption_after_the_first_rows_is_one_too() -> None:
    assert stream_error(OSError("INTERRUPT Error: Interrupted!")).code == "57014"


def test_tables_that_are_taken_away_may_be_interrupted_too(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    monkeypatch.setattr(DatabaseProcess, "drop", fail)

    with pytest.raises(SqlStateError) as refused, sandbox.holding({"held": pa.table({"number": [1]})}):
        pass
    assert refused.value.code == "57014"


def test_a_statement_that_waits_for_a_thread_ends_at_once_and_one_that_has_its_thread_keeps_its_turn(
    sql: AskingSql,
) -> None:
    leave, interrupted = threading.Event(), threading.Event()

    async def end() -> tuple[bool, bool]:
        begun = [
            asyncio.ensure_future(sql.sessions.in_thread(leave.wait, interrupted.set))
            for _ in range(sql.sessions.limits.statements)
        ]
        await asyncio.sleep(0.05)
        waiting = asyncio.ensure_future(sql.sessions.in_thread(lambda: True, lambda: None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        for _ in range(3):
            begun[0].cancel()
            await asyncio.sleep(0.02)
        was_done = begun[0].done()
        leave.set()
        await asyncio.wait(begun)
        return was_done, waiting.cancelled()

    assert sql.run(end()) == (False, True)
    assert interrupted.is_set()


def test_a_tenant_never_has_all_turns() -> None:
    async def ask(asking: AskingSql) -> None:
        plan, planned, all_planned = asking.sessions.plan, [], asyncio.Event()

        async def noted(*of: Any) -> Plan:
            found = await plan(*of)
            planned.append(found)
            if len(planned) == len(heavy):
                all_planned.set()
            return found

        asking.sessions.plan = noted  # type: ignore[method-assign, assignment]
        heavy, sql = [asking.open("acme") for _ in range(3)], "SELECT count(*) FROM generate_series(1, 100000000000)"
        running = [asyncio.ensure_future(each.execute(sql)) for each in heavy]
        await all_planned.wait()
        light = asyncio.ensure_future(asking.open().execute("SELECT 1"))
        done, _ = await asyncio.wait([*running, light], return_when=asyncio.FIRST_COMPLETED)
        for each in heavy:
            each.interrupt()
        stopped = await asyncio.gather(*running, return_exceptions=True)

        assert done == {light}
        assert [error.code for error in stopped if isinstance(error, SqlStateError)] == ["57014"] * 3

    with AskingSql(World(), SqlLimits(statements=2)) as asking:
        asking.run(ask(asking))


def test_a_tenant_never_has_all_turns_of_planning() -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        go_on.wait(PATIENCE_SECONDS)

    async def ask(asking: AskingSql) -> None:
        planning = [asyncio.ensure_future(asking.sessions.in_planning_slot("acme", slow)) for _ in range(3)]
        light = asyncio.ensure_future(asking.open().execute("SELECT 1"))
        done, _ = await asyncio.wait([*planning, light], return_when=asyncio.FIRST_COMPLETED)
        go_on.set()
        await asyncio.gather(*planning)

        assert done == {light}
        assert started.is_set()

    with AskingSql(World(), SqlLimits(statements=2)) as asking:
        asking.run(ask(asking))


@pytest.mark.parametrize("ends", ["interrupted", "late"])
def test_whoever_waits_for_a_turn_of_planning_is_let_go(ends: str) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        go_on.wait(PATIENCE_SECONDS)

    async def ask(asking: AskingSql) -> str:
        planning = asyncio.ensure_future(asking.sessions.in_planning_slot("acme", slow))
        await asyncio.to_thread(started.wait, PATIENCE_SECONDS)
        session = asking.open("acme")
        waiting = asyncio.ensure_future(session.prepare("SELECT store FROM stores", ()))
        if ends == "interrupted":
            await asyncio.sleep(0)  # it has begun
            session.interrupt()
        [result] = await asyncio.gather(waiting, return_exceptions=True)
        is_held = not planning.done()
        go_on.set()
        await planning
        assert is_held
        assert isinstance(result, SqlStateError)
        return result.code

    with AskingSql(World(), SqlLimits(statements=2, seconds=60 if ends == "interrupted" else 0.1)) as asking:
        assert asking.run(ask(asking)) == "57014"


def test_a_statement_is_searched_once_for_all_of_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    find_all = exp.Expression.find_all

    def counted(self: exp.Expression, *kinds: type[exp.Expression]) -> Iterator[exp.Expression]:
        searched[-1] += 1
        return find_all(self, *kinds)

    with AskingSql(World()) as sql:
        session = sql.open()
        monkeypatch.setattr(exp.Expression, "find_all", counted)
        for parameters in (1, 10, 100):  # what is found once is found with the first
            searched.append(0)
            condition = " or ".join(f"store = ${number}" for number in range(1, parameters + 1))
            sql.run(session.prepare(f"select 1 from stores where {condition}", ()))  # noqa: S608 - of this test

    assert searched[1] == searched[2] > 0


def test_a_list_of_parameters_is_looked_through_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    iter_expressions = exp.Expression.iter_expressions

    def counted(self: exp.Expression, *, reverse: bool = False) -> Iterator[exp.Expr]:
        looked[-1] += isinstance(self, exp.In)
        return iter_expressions(self, reverse=reverse)

    with AskingSql(World()) as sql:
        session = sql.open()
        monkeypatch.setattr(exp.Expression, "iter_expressions", counted)
        for parameters in (1, 10, 100):
            looked.append(0)
            numbered = ", ".join(f"${number}" for number in range(1, parameters + 1))
            sql.run(session.prepare(f"select 1 from stores where 'x' in ({numbered}, store)", ()))  # noqa: S608 - likewise

    assert looked[1] == looked[2] > 0
