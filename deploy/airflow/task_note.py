"""Progress as the note of the Airflow task that runs this command."""

import os
import time
from typing import TYPE_CHECKING, Protocol, Self

import structlog

from deploy.airflow.client import AirflowClient, Task
from master_dataset.errors import GalateaError

if TYPE_CHECKING:
    from deploy.settings import Settings

EVERY_SECONDS, AFTER_A_FAILURE_SECONDS = 5.0, 60.0
_TASK = ("AIRFLOW_CTX_DAG_ID", "AIRFLOW_CTX_DAG_RUN_ID", "AIRFLOW_CTX_TASK_ID")

log = structlog.get_logger()


class Steps(Protocol):
    """What draws progress."""

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total`, working on `what`."""


class TaskNote:
    """Progress of a command; without a task around it nothing is written. A note that fails is logged, no more."""

    def __init__(self, client: AirflowClient, task: Task | None) -> None:
        """`task`: whose note it is."""
        self._client, self._task = client, task
        self._again_at = float("-inf")

    @classmethod
    def of_this_process(cls, settings: "Settings") -> Self:
        """The note of the task that started this process."""
        named = [os.environ.get(name, "") for name in _TASK]
        return cls(AirflowClient.of(settings), Task(*named) if all(named) else None)

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total`, working on `what`; now and then, because each is a request."""
        if time.monotonic() >= self._again_at:
            self.write(f"{what} {done}/{total}")

    def write(self, text: str) -> None:
        """Say it now."""
        if self._task is None:
            return
        try:
            self._client.write_note(self._task, text)
            self._again_at = time.monotonic() + EVERY_SECONDS
        except GalateaError as error:
            self._again_at = time.monotonic() + AFTER_A_FAILURE_SECONDS
            log.warning("airflow.note_not_written", task=self._task.name, message=error.message)


class Noted:
    """Progress that is drawn, and is the task's note as well."""

    def __init__(self, steps: Steps, note: TaskNote) -> None:
        """`steps` draws it."""
        self._steps, self._note = steps, note

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total`, working on `what`."""
        self._steps.step(done, total, what)
        self._note.step(done, total, what)
