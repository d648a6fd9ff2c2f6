"""What the one job did for one view, as a task of its own: it computes nothing, and starts no process."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from dags.tasks.recompute_step import RecomputeStep


class ViewDone(BaseOperator):
    """Reads the report of the job, and is skipped if nothing of its view had to be computed."""

    def __init__(self, *, job: RecomputeStep, **options: Any) -> None:  # noqa: ANN401 - Airflow's own
        """`job`: what computed all views. This task is named as its view."""
        super().__init__(**options)
        self.job = job.task_id
        self.set_upstream(job)

    def execute(self, context: Context) -> Mapping[str, Any]:
        """Give back days, blocks, events and seconds of this view."""
        views: Mapping[str, Mapping[str, Any]] = context["ti"].xcom_pull(task_ids=self.job).get("views", {})
        if self.task_id not in views:
            raise AirflowSkipException(f"nothing of `{self.task_id}` had to be computed")
        done = views[self.task_id]
        self.log.info("%s", "   ".join(f"{name} {value}" for name, value in done.items()))
        return done
