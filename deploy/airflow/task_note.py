"""Progress as the note of the Airflow task that runs this command."""

import os
import time
from typing import TYPE_CHECKING, Self

import structlog

from deploy.airflow.client import AirflowClient, Task
from master_dataset.errors import GalateaError

if TYPE_CHECKING:
    from deploy.settings import Settings

EVERY_SECONDS = 5.0
_TASK = ("AIRFLOW_CTX_DAG_ID", "AIRFLOW_CTX_DAG_RUN_ID", "AIRFLOW_CTX_TASK_ID")

log = structlog.get_logger()


class TaskNote:
    """Progress of a command; without a task around it nothing is written. A note that fails is logged, no more."""

    def __init__(self, client: AirflowClient, task: Task | None) -> None:
        """`task`: whose note it is."""
        self._client, self._task = client, task
        self._written_at = float("-inf")

    @classmethod
    def of_this_process(cls, settings: "Settings") -> Self:
        """The note of the task that started this process."""
        named = [os.environ.get(name, "") for name in _TASK]
        return cls(AirflowClient.of(settings), Task(*named) if all(named) else None)

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total`, working on `what`; now and then, because each is a request."""
        if time.monotonic() - self._written_at >= EVERY_SECONDS:
            self.write(f"{what} {done}/{total}")

    def write(self, text: str) -> None:
        """Say it now."""
        if self._task is None:
            return
        self._written_at = time.monotonic()
        try:
            self._client.write_note(self._task, text)
        except GalateaError as error:
            log.warning("airflow.note_not_written", task=self._task.name, message=error.message)
