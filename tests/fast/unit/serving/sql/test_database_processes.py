"""Each database is in a process of its own, which ends if nothing else ends a statement."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pyarrow as pa
import pytest

from master_dataset.registry.stores import Store
from serving_layer.sql.database import Channel
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


def seconds_of(process: psutil.Process) -> float:
    """Of the processor, that it has used."""
    with suppress(psutil.NoSuchProcess):
        return float(process.cpu_times().user)
    return 0.0


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
    session, before = sql.open(), {each.pid: seconds_of(each) for each in databases()}

    async def interrupted() -> str:
        running = asyncio.ensure_future(session.execute(query))
        while not (  # noqa: ASYNC110
            busy := [each for each in databases() if seconds_of(each) > before.get(each.pid, 1) + 0.2]
        ):
            await asyncio.sleep(0.01)  # what is waited for has no event
        session.interrupt()
        with pytest.raises(SqlStateError) as refused:
            await running
        await asyncio.to_thread(await_end, busy[0].pid)
        return refused.value.code

    assert sql.run(interrupted()) == "57014"
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


def test_a_database_knows_nothing_of_the_environment_that_it_does_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_CASSANDRA_PASSWORD", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    before = set(databases())
    process = DatabaseProcess(512)
    process.values("SELECT 1")
    [database] = set(databases()) - before

    assert "secret" not in database.environ().values()
    process.close()


def test_a_process_whose_answer_was_not_read_to_its_end_is_used_no_more(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of it would be taken for the answer to the next call, perhaps of another tenant."""

    def fail(_: Channel) -> pa.Table:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Channel, "receive_rows", fail)
        with pytest.raises(SqlStateError) as refused:
            sandbox.query("SELECT * FROM range(100000)")

    assert (refused.value.code, sandbox.is_alive) == ("53200", False)


def test_a_process_that_has_taken_much_memory_is_not_kept(sandbox: Sandbox) -> None:
    with pytest.raises(SqlStateError) as refused:
        sandbox.query("SELECT range FROM range(1000000)")

    assert (refused.value.code, sandbox.is_alive) == ("54000", False)


def test_a_database_that_cannot_be_started_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nothing")
    before = psutil.Process().num_fds()

    for _ in range(5):
        with pytest.raises(SqlStateError, match="cannot be started"):
            Sandbox("UTC", Limits())

    assert psutil.Process().num_fds() <= before


def test_a_database_that_ends_at_its_start_is_no_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(SqlStateError) as refused:
        Sandbox("UTC", Limits())

    assert refused.value.code == "58000"


def test_a_database_may_have_a_lower_limit_of_memory_already() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**29, 2**29));"
        "from serving_layer.sql.sandbox import Limits, Sandbox; print(Sandbox('UTC', Limits()).query('SELECT 1').rows)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[(1,)]"


def test_a_database_that_is_closed_can_no_longer_be_called() -> None:
    process = DatabaseProcess(512)
    process.close()
    process.close()
    process.interrupt()

    assert not process.is_alive
    with pytest.raises(DatabaseEndedError):
        process.values("SELECT 1")
