"""The tasks of a recompute: choose the cut, compute all views in one Spark job, look at each, publish at once."""

from datetime import timedelta

from airflow.sdk import TriggerRule

from dags.tasks.choose_cut import ChooseCut
from dags.tasks.publish import Publish
from dags.tasks.recompute_step import RecomputeStep
from dags.tasks.view_asset import view_asset
from dags.tasks.view_done import ViewDone
from views import registered_views

AGAIN = {"retries": 3, "retry_delay": timedelta(seconds=30), "retry_exponential_backoff": True}
"""A neighbour that is away comes back. What is tried again goes on where the last try ended."""


def recompute_graph() -> None:
    """Add the tasks to the DAG at hand."""
    views = registered_views()
    job = RecomputeStep(task_id="rebuild", step="compute", doc_md=RecomputeStep.__doc__)
    ChooseCut(task_id="choose_cut", step="plan", doc_md=ChooseCut.__doc__) >> job
    done = [ViewDone(task_id=view.name, job=job, doc_md=view.question) for view in views]
    done >> Publish(
        task_id="publish",
        step="publish",
        doc_md=Publish.__doc__,
        outlets=[view_asset(view.name) for view in views],
        trigger_rule=TriggerRule.NONE_FAILED,
    )
