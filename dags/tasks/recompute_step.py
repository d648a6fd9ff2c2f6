"""One step of a recompute: `plan`, `compute` or `publish`. The DAG run's id is the recompute's."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Context

from dags.tasks.command import GalateaCommand
from dags.tasks.recompute_id import recompute_id

_KEPT = ("publication", "base", "cut", "run", "views", "repeats", "conflicts", "miskeyed", "alarms", "seconds")
"""What of the report goes to XCom: a list of ten thousand partitions does not."""


class RecomputeStep(GalateaCommand):
    """Runs `galatea recompute STEP ID`. Its XCom is the state and the report, as far as there is one."""

    def __init__(self, *, step: str, **options: Any) -> None:  # noqa: ANN401 - Airflow's own
        """`step`: plan, compute or publish."""
        super().__init__(words=("recompute", step), **options)

    def arguments(self, context: Context) -> Sequence[str]:
        """The id."""
        return (recompute_id(self.dag_id, context["ti"].run_id),)

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - see below
        """State, publication and the short part of the report."""
        report = answer.get("report") or {}
        shown = {"id": answer["id"], "state": answer["state"], **{name: report.get(name) for name in _KEPT}}
        self.log.info("%s is %s", shown["id"], shown["state"])
        return shown
