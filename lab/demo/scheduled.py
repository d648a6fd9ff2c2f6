"""The rebuild on the way, as Airflow runs it: the run that the clock begins otherwise, begun now."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from stamina import retry

from deploy.airflow.client import REBUILD, AirflowClient
from deploy.cassandra import session_of
from master_dataset.errors import AirflowUnavailable, OperatorError
from views.control.pointer_row import PointerRow

if TYPE_CHECKING:
    from deploy.settings import Settings

LOOK_SECONDS, START_SECONDS = 1.0, 300.0
Answer = TypeVar("Answer")
SUCCESS, FAILED = "success", "failed"


@dataclass(frozen=True)
class Scheduled:
    """`settings`: of a stack whose Airflow is up."""

    settings: "Settings"

    def rebuild(self) -> str:
        """Begin the run, wait for its end, and say what is published then. OperatorError if it fails.

        AirflowUnavailable if Airflow, which starts while the history is read, is not up after some minutes.
        """
        run = f"demo-{uuid.uuid4()}"
        self._asked(lambda client: client.begin_rebuild(run, "the demo"))
        while (state := self._asked(lambda client: client.state(run, REBUILD))) != SUCCESS:
            if state == FAILED:
                do = f"open {self.settings.airflow_url}/dags/{REBUILD}/runs/{run}"
                raise OperatorError(f"Airflow's run `{run}` of `{REBUILD}` has failed", do=do)
            time.sleep(LOOK_SECONDS)
        pointer = PointerRow(session_of(self.settings.cassandra_address)).read()
        return f"Airflow has published {pointer.publication} at cut {pointer.cut:%H:%M:%S} UTC"

    def _asked(self, ask: Callable[[AirflowClient], Answer]) -> Answer:
        return retry(on=AirflowUnavailable, attempts=None, timeout=START_SECONDS, wait_max=2.0)(ask)(
            AirflowClient.of(self.settings)
        )
