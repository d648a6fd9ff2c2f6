"""An Airflow that is away is said to be so, and never stops the work itself."""

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from structlog.testing import capture_logs

from deploy.airflow.client import AirflowClient, Task, TaskNote, airflow_of
from deploy.local.ports import free_ports
from deploy.local.records import State, write_states
from deploy.settings import Settings
from master_dataset.errors import AirflowUnavailableError, OperatorError
from tests.support.secured_servers import HOST, Authority
from views.control.recompute import RecomputeRequest

TASK = Task("recompute", "recompute-1", "rebuild")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a stack whose Airflow does not run."""
    (tmp_path / "airflow.password").write_text("secret\n")
    return Settings(home=tmp_path, airflow_port=free_ports(1)[0])


def test_an_airflow_that_is_away_is_unavailable(settings: Settings) -> None:
    with pytest.raises(AirflowUnavailableError, match="does not respond") as refused:
        AirflowClient.of(settings).trigger("recompute-1", RecomputeRequest(), "late invoices")

    assert "secret" not in str(refused.value)


def test_an_airflow_that_was_never_started_has_no_password_yet(settings: Settings) -> None:
    Path(settings.airflow.password_file).unlink()

    with pytest.raises(AirflowUnavailableError, match="password"):
        AirflowClient.of(settings).state("recompute-1")


def test_a_note_that_cannot_be_written_is_logged_and_no_more(settings: Settings) -> None:
    with capture_logs() as logs:
        TaskNote(AirflowClient.of(settings), TASK).step(1, 2, "sales")

    assert [(each["event"], each["task"]) for each in logs] == [("airflow.note_not_written", "rebuild")]


def test_a_command_outside_of_airflow_writes_no_note(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW_CTX_DAG_ID", "AIRFLOW_CTX_DAG_RUN_ID", "AIRFLOW_CTX_TASK_ID"):
        monkeypatch.delenv(name, raising=False)

    with capture_logs() as logs:
        TaskNote.of_this_process(settings).write("half way")

    assert logs == []


def test_a_stack_has_an_airflow_if_it_was_started_with_it_or_one_is_named(settings: Settings) -> None:
    (settings.home / "run").mkdir()
    write_states(settings.home, {"kafka": State.RUNNING})
    without, named = airflow_of(settings), airflow_of(Settings(home=settings.home, airflow_url="https://airflow/"))
    write_states(settings.home, {"kafka": State.RUNNING, "airflow": State.BACKING_OFF})

    assert without is None
    assert named == AirflowClient("https://airflow", "admin", settings.home / "airflow.password")
    assert airflow_of(settings) == AirflowClient.of(settings)


class _Airflow(BaseHTTPRequestHandler):
    """Gives a token to everybody; every run has succeeded. `working`: DAGs with a run that is queued.

    `paused`: those that start none. `only`: the body of every response; None: it depends on the request.
    """

    working: ClassVar[set[str]] = set()
    paused: ClassVar[set[str]] = set()
    only: ClassVar[bytes | None] = None

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer({"access_token": "token"})

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path.endswith("/dagRuns"):
            is_asked_for = "queued" in parse_qs(parts.query)["state"]
            total = int(is_asked_for and parts.path.split("/")[-2] in self.working)
            self._answer({"dag_runs": [], "total_entries": total})
        elif parts.path.split("/")[-2] == "dags":
            self._answer({"is_paused": parts.path.split("/")[-1] in self.paused})
        else:
            self._answer({"state": "success"})

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def _answer(self, content: Mapping[str, object]) -> None:
        body = json.dumps(content).encode() if self.only is None else self.only
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def secured(authority: Authority, settings: Settings) -> Iterator[Settings]:
    """Of an Airflow whose certificate that authority has signed."""
    with HTTPServer((HOST, 0), _Airflow) as server:
        server.socket = authority.issue("airflow").server().wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield settings.replace(airflow_url=f"https://{HOST}:{server.server_port}", airflow_ca_file=authority.file)
        server.shutdown()
        thread.join()


def test_an_airflow_of_ones_own_authority_is_trusted_with_the_setting_for_it(secured: Settings) -> None:
    assert AirflowClient.of(secured).state("recompute-1") == "success"


@pytest.mark.parametrize("dag", ["rebuild_views", "recompute"])
def test_an_airflow_works_while_a_run_of_a_rebuild_is_queued_or_running(
    secured: Settings, monkeypatch: pytest.MonkeyPatch, dag: str
) -> None:
    airflow = AirflowClient.of(secured)
    idle = airflow.is_working()
    monkeypatch.setattr(_Airflow, "working", {dag})
    working = airflow.is_working()
    monkeypatch.setattr(_Airflow, "paused", {dag})

    assert (idle, working, airflow.is_working()) == (False, True, False)


@pytest.mark.parametrize("said", [b"<html>sign in</html>", b"[]", b"{}", b"null"])
def test_what_is_no_airflow_is_unavailable(secured: Settings, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    monkeypatch.setattr(_Airflow, "only", said)

    with pytest.raises(AirflowUnavailableError, match="is not Airflow's REST API"):
        AirflowClient.of(secured).is_working()


def test_an_airflow_of_another_authority_names_the_setting_for_it(secured: Settings, tmp_path: Path) -> None:
    other = secured.replace(airflow_ca_file=Authority(tmp_path, "other").file)

    with pytest.raises(OperatorError, match="is not signed by an authority in") as refused:
        AirflowClient.of(other).state("recompute-1")

    assert refused.value.do.startswith("set GALATEA_AIRFLOW_CA_FILE")


def test_an_authority_that_cannot_be_read_is_named_with_its_setting(secured: Settings) -> None:
    Path(secured.airflow.ca_file).unlink()

    with pytest.raises(OperatorError, match="of GALATEA_AIRFLOW_CA_FILE cannot be used"):
        AirflowClient.of(secured).state("recompute-1")
