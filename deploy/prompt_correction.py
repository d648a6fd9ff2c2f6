"""Prompt correction in a process of the REST interface, with its runner of recomputes; see `batch_layer`'s module."""

import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from cassandra import DriverException
from deltalake.exceptions import DeltaError

from batch_layer.prompt_correction import LEASE_SECONDS, Limits, PromptCorrection, StoredState
from deploy.airflow.client import REBUILD, RECOMPUTE, AirflowClient, airflow_of
from deploy.batch import context_of
from deploy.cassandra import session_of
from deploy.recompute_runner import Launch, Runner
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE, Lease
from master_dataset.errors import AirflowUnavailableError, GalateaError, OperatorError
from views.control.recompute import BY_ITSELF, LATE_EVENTS_REASON, RecomputeRequest, Recomputes

if TYPE_CHECKING:
    from deploy.settings import Settings

STEP_SECONDS = 2.0

log = structlog.get_logger()


@dataclass(frozen=True)
class OthersAtWork:
    """Who else may be working on a recompute: the queue of this process, and Airflow between two of its tasks."""

    runner: Runner
    settings: "Settings"

    def __call__(self) -> str | None:
        """Which of them is; None if none is.

        An Airflow that does not answer is not waited for: its tasks hold the usual lock.
        """
        if self.runner.is_busy:
            return "recomputes in the queue of this process"
        if self._is_airflow_working(airflow_of(self.settings)):
            return f"a run of the DAG `{REBUILD}` or `{RECOMPUTE}` that is queued or running in Airflow"
        return None

    @staticmethod
    def _is_airflow_working(airflow: AirflowClient | None) -> bool:
        try:
            return airflow is not None and airflow.is_working()
        except (AirflowUnavailableError, OperatorError) as error:
            log.warning("prompt_correction.airflow_unknown", error=error.message)
            return False


def prompt_correction_of(settings: "Settings", runner: Runner) -> PromptCorrection:
    """Build what one process does. Its rebuilds are done by `runner`, even if there is an Airflow.

    An Airflow needs longer to start the tasks of a recompute than a small one takes.
    """
    session, batch = session_of(settings.cassandra.address), settings.batch
    launch = Launch(Recomputes(session), runner)
    return PromptCorrection(
        StoredState(context_of(settings), OthersAtWork(runner, settings)),
        lambda: Lease(session, "prompt_correction", max(LEASE_SECONDS, batch.prompt_correction_pause_seconds)),
        Limits(
            settings.layers.epoch,
            settings.layers.skew + timedelta(seconds=batch.prompt_correction_delay_seconds),
            batch.prompt_correction_pause_seconds,
        ),
        lambda: launch.start(RecomputeRequest(), LATE_EVENTS_REASON, BY_ITSELF),
    )


class PromptCorrectionThread:
    """Looks for late events until it is stopped."""

    def __init__(self, correction: PromptCorrection) -> None:
        """Nothing is looked for yet."""
        self._correction = correction
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prompt-correction", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Start no more rebuilds. The runner ends the one that runs."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(STEP_SECONDS)

    def _run(self) -> None:
        while not self._stopped.wait(STEP_SECONDS):
            try:
                self._correction.step()
            except (GalateaError, DeltaError, OSError, DriverException, *CASSANDRA_UNAVAILABLE) as error:
                log.warning("prompt_correction.not_done", error=f"{type(error).__name__}: {error}")
            except Exception:  # the edge of the thread: without it, late events would wait for the schedule from now on
                log.exception("prompt_correction.failed")
