"""Each database is in a process of its own, which ends if nothing else ends a statement."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pyarrow as pa
import pytest

from master_dataset.registry.stores import Store
from serving_layer.sql.database_process import DatabaseEndedError, DatabaseProcess
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.sandbox import Limits, Sandbox
from tests.support import World
from tests.support.world_sql import AskingSql

PATIENCE_SECONDS = 30
DATABASES = "serving_layer.sql.database"
LEFT = """
import threading, time
import psutil
from serving_layer.sql.sandbox import Limits, Sandbox

sandbox = Sandbox("UTC", Limits())
threading.Thread(target=sandbox.query, args=("SELECT count(*) FROM range(100000000000)",), daemon=True).start()
time.sleep(0.2)
print(*[each.pid for each in psutil.Process().children()], flush=True)
time.sleep(3600)
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    found = Sandbox("UTC", Limits())
    yield found
    found.close()


@pytest.fixture
def sql() -> Iterator[AskingSql]:
    with AskingSql(World(Store(id="1", timezone="UTC"))) as asking:
        asking.answer("select store from stores")  # starts its first process
        yield asking


def databases() -> list[psutil.Process]:
    """The processes of databases that this process has started."""
    return [each for each in psutil.Process().children() if DATABASES in " ".join(each.cmdline())]


def await_end(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the process goes on"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "query",
    [
        "select list_distinct(list_sort(range(15000000)))",
        "select regexp_replace(repeat('a', 4000000), 'a(?:.*z)?', '', 'g')",
        "select regexp_extract_all(repeat('a', 4000000), 'a(?:.*z)?')",
    ],
)
def test_a_statement_that_duckdb_does_not_interrupt_is_ended_and_others_go_on(
    sql: AskingSql, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """DuckDB looks for interruptions only between batches of rows."""
    monkeypatch.setattr("serving_layer.sql.database_process.PATIENCE_SECONDS", 0.2)
    session = sql.open()
    sql.answer("set statement_timeout = '300ms'", session=session)
    before = databases()

    assert sql.refusal(query, session=session).code == "57014"
    assert len(set(before) - set(databases())) == 1
    assert sql.rows("select store from stores") == [("1",)]
    assert not sql.sessions.stuck.is_set()


def test_a_database_that_has_ended_is_replaced(sql: AskingSql) -> None:
    for each in databases():
        each.kill()
        each.wait()

    assert sql.rows("select store, timezone from stores") == [("1", "UTC")]


def test_the_statement_of_a_process_that_ends_says_what_to_do() -> None:
    before = set(databases())
    sandbox = Sandbox("UTC", Limits())
    [database] = set(databases()) - before
    threading.Timer(0.5, database.kill).start()

    with pytest.raises(SqlStateError) as refused:
        sandbox.query("SELECT count(*) FROM range(100000000000)")

    assert (refused.value.code, bool(refused.value.hint), sandbox.is_alive) == ("53200", True, False)


def test_an_interruption_that_comes_too_late_does_not_concern_the_next_statement(sandbox: Sandbox) -> None:
    for number in range(300):
        assert sandbox.query(f"SELECT {number}").rows == [(number,)]
        sandbox.interrupt()


def test_an_opened_database_has_nothing_of_the_former_one(sandbox: Sandbox) -> None:
    with sandbox.holding({"held": pa.table({"number": [1, 2]})}):
        assert sandbox.query("SELECT sum(number) FROM held").rows == [(3,)]
        sandbox.open("Europe/Berlin")
        with pytest.raises(SqlStateError, match="held"):
            sandbox.query("SELECT * FROM held")

    assert sandbox.query("SELECT current_setting('TimeZone')").rows == [("Europe/Berlin",)]


def test_rows_of_every_kind_pass_unchanged(sandbox: Sandbox) -> None:
    table = pa.table({"kind": pa.array(["a", None, "b"]).dictionary_encode(), "list": [[1], [], None]})

    with sandbox.holding({"held": table.slice(1), "empty": table.slice(3)}):
        assert sandbox.query("SELECT * FROM held").rows == [(None, []), ("b", None)]
        found = sandbox.query("SELECT * FROM empty")

    assert ([each.name for each in found.columns], found.rows) == (["kind", "list"], [])


def test_a_database_ends_with_the_process_that_has_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", LEFT], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert psutil.pid_exists(pid)
        starter.kill()

    await_end(pid)


def test_a_database_has_no_setting_of_the_process_that_has_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_CASSANDRA_PASSWORD", "secret")
    before = set(databases())
    process = DatabaseProcess(512)
    process.values("SELECT 1")
    [database] = set(databases()) - before

    assert not [name for name in database.environ() if name.startswith("GALATEA_")]
    process.close()


def test_a_database_that_is_closed_can_be_called_no_more() -> None:
    process = DatabaseProcess(512)
    process.close()
    process.close()
    process.interrupt()

    assert not process.is_alive
    with pytest.raises(DatabaseEndedError):
        process.values("SELECT 1")
