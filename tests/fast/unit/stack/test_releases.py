"""Every process records its release, so that two at once are seen."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import InvalidRequest, Unavailable

from deploy.checks.cassandra import releases_finding
from deploy.local.rights import RELEASES, RIGHTS
from deploy.process import installed_release
from deploy.services import runner
from deploy.services.releases import LIVE_SECONDS, WRITE_SECONDS, ReleaseRecorder, are_records_read
from deploy.services.runner import Process
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError


class Table:
    """A session of Cassandra that keeps the rows of `process_releases`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.rows = error, dict[tuple[str, str], tuple[str, int]]()
        columns = SimpleNamespace(columns={"release"})
        keyspace = SimpleNamespace(tables={"lag": columns, "process_releases": columns})
        self.cluster = SimpleNamespace(metadata=SimpleNamespace(keyspaces={"galatea": keyspace}))

    def prepare(self, statement: str) -> str:
        if self.error is not None:
            raise self.error
        return statement

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        if statement.startswith("INSERT"):
            component, process, release, seconds = values
            self.rows[component, process] = (release, seconds)
        if statement == "SELECT component, reads_by_store, reads_receipt_blocks FROM process_releases":
            return [
                SimpleNamespace(component=name, reads_by_store=True, reads_receipt_blocks=True) for name, _ in self.rows
            ]
        if "FROM galatea.process_releases" in statement:
            return [SimpleNamespace(component=name, release=own) for (name, _), (own, _) in self.rows.items()]
        return []


def recorder(table: Table, name: str, release: str) -> ReleaseRecorder:
    return ReleaseRecorder(lambda: table, name, release)


def test_processes_of_a_component_have_a_row_each_that_outlives_two_failed_writes() -> None:
    table = Table()
    first, second = recorder(table, "api", "0.2.0"), recorder(table, "api-2", "0.1.0")

    assert all([first.record(), first.record(), second.record()])
    assert [(component, release) for (component, _), (release, _) in table.rows.items()] == [
        ("api", "0.2.0"),
        ("api", "0.1.0"),
    ]
    assert {seconds for _, seconds in table.rows.values()} == {LIVE_SECONDS}
    assert LIVE_SECONDS >= 3 * WRITE_SECONDS


@pytest.mark.parametrize("component", ["alerts", "api", "dispatcher", "sql"])
def test_doctor_names_a_process_of_another_release(component: str) -> None:
    table = Table()
    recorder(table, component, "0.0.1").record()

    finding = releases_finding(table, datetime.now(UTC))

    assert not finding.ok
    assert f"several at once: {component}: 0.0.1; this command: {installed_release()}" in finding.found


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("unconfigured table process_releases"),
        Unavailable("no quorum"),
        CassandraAccessError("no right", do="grant it"),
        CassandraUnavailableError("no node", do="start it"),
    ],
)
def test_what_fails_ends_no_process(error: Exception) -> None:
    assert not recorder(Table(error), "sql", "0.2.0").record()


def test_a_process_records_its_release_once_it_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    (tmp_path / "run").mkdir()
    recorded: list[str] = []
    monkeypatch.setattr(runner, "record_release", lambda _, name: recorded.append(name))
    monkeypatch.setattr(runner, "freeze_startup_objects", lambda: None)
    process = Process("dispatcher")

    process.ready()
    process.ready()

    assert recorded == ["dispatcher"]


def test_every_process_that_runs_may_record_it() -> None:
    assert {name for name, rights in RIGHTS.items() if RELEASES in rights.writes} == RIGHTS.keys() - {"batch"}


@pytest.mark.parametrize(("name", "reads"), [("archive", True), ("speed-2", True), ("api", False), ("sql", False)])
def test_archive_and_speed_layer_read_records(name: str, *, reads: bool) -> None:
    table: Any = Table()
    recorder(table, name, "0.1.0").record()

    assert are_records_read(table) is reads
