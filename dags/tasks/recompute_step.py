"""One step of a recompute: `plan`, `compute` or `publish`. The DAG run's id is the recompute's."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Context

from dags.tasks.command import GalateaCommand
from dags.tasks.recompute_id import recompute_id

_LONG = ("partitions", "corrections")
"""What of the answer does not go to XCom: it can be ten thousand rows."""


class RecomputeStep(GalateaCommand):
    """Runs `galatea recompute STEP ID`. Its XCom is the state and what was counted so far."""

    def __init__(self, *, step: str, **options: Any) -> None:  # noqa: ANN401 - Airflow's own
        """`step`: plan, compute or publish."""
        super().__init__(words=("recompute", step), **options)

    def words(self, context: Context) -> Sequence[str]:
        """The step and the id."""
        return (*super().words(context), self.id_of(context))

    def id_of(self, context: Context) -> str:
        """The recompute of this DAG run."""
        return recompute_id(self.dag_id, context["ti"].run_id)

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - see below
        """Id, state and what was counted."""
        self.log.info("%s is %s", answer["id"], answer["state"])
        return {name: value for name, value in answer.items() if name not in _LONG}
