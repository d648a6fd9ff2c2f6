"""An Airflow that is away is said to be so, and never stops the work itself."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from deploy.airflow.client import AirflowClient, Task, TaskNote, airflow_of
from deploy.local.ports import free_ports
from deploy.local.records import State, write_states
from deploy.settings import Settings
from master_dataset.errors import AirflowUnavailableError
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
