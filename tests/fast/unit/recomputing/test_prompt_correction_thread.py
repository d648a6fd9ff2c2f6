"""The thread that looks for late events goes on, whatever goes wrong once."""

import threading
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from deploy import prompt_correction
from deploy.prompt_correction import OthersAtWork, PromptCorrectionThread
from master_dataset.errors import OperatorError

PATIENCE_SECONDS = 10.0


class Correction:
    """Fails at first, in these ways one after another."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.has_gone_on = threading.Event()

    def step(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.has_gone_on.set()


def test_it_looks_again_after_an_error_that_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_correction, "STEP_SECONDS", 0.01)
    correction = Correction(OperatorError("no rights", do="grant them"), ZeroDivisionError())
    thread = PromptCorrectionThread(correction)  # type: ignore[arg-type]

    with capture_logs() as logs:
        thread.start()
        has_gone_on = correction.has_gone_on.wait(PATIENCE_SECONDS)
        thread.stop()

    assert has_gone_on
    assert [each["event"] for each in logs] == ["prompt_correction.not_done", "prompt_correction.failed"]


class Airflow:
    """Stands for Airflow's client."""

    def __init__(self, *, is_working: bool) -> None:
        self._is_working = is_working

    def is_working(self) -> bool:
        return self._is_working


@pytest.mark.parametrize(
    ("has_queue", "has_run", "named"),
    [(True, True, "queue of this process"), (False, True, "queued or running in Airflow"), (False, False, None)],
)
def test_what_it_waits_for_is_named(
    monkeypatch: pytest.MonkeyPatch, *, has_queue: bool, has_run: bool, named: str | None
) -> None:
    monkeypatch.setattr(prompt_correction, "airflow_of", lambda _: Airflow(is_working=has_run))

    found = OthersAtWork(SimpleNamespace(is_busy=has_queue), SimpleNamespace())()  # type: ignore[arg-type]

    assert found is None if named is None else named in (found or "")
