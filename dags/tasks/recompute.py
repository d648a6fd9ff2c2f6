"""The tasks of a recompute: choose the cut, compute all views in one job, publish at once, and report on each view."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Asset, BaseOperator, Context, WeightRule
from airflow.sdk.exceptions import AirflowSkipException

from dags.tasks.command import GalateaCommand
from views import registered_views
from views.control.recompute import RecomputeRequest

RECOMPUTE_DAG = "recompute"
"""The DAG whose run ids are the ids of recomputes, because REST names both."""
_LONGEST = 200
_OTHER = re.compile(r"[^A-Za-z0-9._:+-]")
_OF_A_DAG = re.compile(r"[\w-]+\.")
"""How the names of runs of other DAGs begin. Airflow lets people choose the id of a run."""


def recompute_id(dag_id: str, run_id: str) -> str:
    """The recompute of a DAG run: always the same one, so that a retry or a cleared task resumes it.

    Up to 200 letters, digits and `. _ : + -`. Two runs never share an id.
    """
    name = run_id if dag_id == RECOMPUTE_DAG else f"{dag_id}.{run_id}"
    safe = _OTHER.sub("-", name)
    is_of_another = dag_id == RECOMPUTE_DAG and _OF_A_DAG.match(run_id)
    if safe == name and safe[0].isalnum() and len(safe) <= _LONGEST and not is_of_another:
        return safe
    whole = f"{dag_id}.{run_id}" if is_of_another else name
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return f"{RECOMPUTE_DAG}-{digest}.{safe}"[:_LONGEST]


_NOT_IN_XCOM = ("partitions", "corrections")
"""Parts of the answer that can have ten thousand rows."""


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

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """Id, state and counts."""
        self.log.info("%s is %s", answer["id"], answer["state"])
        return {name: value for name, value in answer.items() if name not in _NOT_IN_XCOM}


SCHEDULED = "scheduled"


class ChooseCut(RecomputeStep):
    """Runs `galatea recompute plan ID` with the values of the DAG run's form, if it has one."""

    def words(self, context: Context) -> Sequence[str]:
        """The step, options, id, views."""
        form, by = context["params"], filter(None, ("airflow", context["dag_run"].triggering_user_name))
        request = RecomputeRequest.from_form(form)
        noted = (f"--why={form.get('reason', SCHEDULED)}", f"--by={'/'.join(by)}")
        return (*self.verb, "--json", *request.options(), *noted, "--", self.id_of(context), *request.views)


GROUP = "galatea"


def view_asset(view: str) -> Asset:
    """The asset of the view of that name; its event says publication and cut."""
    return Asset(name=f"galatea.{view}", uri=f"galatea://views/{view}", group=GROUP)


PREVIEWED, UNCHANGED = "previewed", "unchanged"


class Publish(RecomputeStep):
    """Runs `galatea recompute publish ID`, and updates the assets of the views that were published, and no others.

    So a DAG that is scheduled on a view's asset reads published data, and never runs after a preview.
    """

    def words(self, context: Context) -> Sequence[str]:
        """A retry does everything that is left: if another publication came first, the cells are computed again."""
        if context["ti"].try_number > 1:
            return ("rebuild", "--json", f"--id={self.id_of(context)}")
        return super().words(context)

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        """Set the outlets. AirflowSkipException if there was nothing to publish."""
        shown = super().shown(answer, context)
        if shown["state"] == UNCHANGED:
            raise AirflowSkipException("nothing is new since the last publication")
        if shown["state"] == PREVIEWED:
            self.log.info("%s", json.dumps(answer, indent=2))
        published = () if shown["state"] == PREVIEWED else shown["views"]
        self.outlets = [view_asset(name) for name in published]
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"publication": shown["publication"], "cut": shown["cut"]}
        return shown


class ViewDone(BaseOperator):
    """Shows what the one job did for one view, as a task of its own; skipped if nothing of the view was computed."""

    def __init__(self, *, job: RecomputeStep, **options: Any) -> None:  # noqa: ANN401 - Airflow's own
        """`job`: the task that computes all views. This task is named after its view."""
        super().__init__(**options)
        self.job = job.task_id
        self.set_upstream(job)

    def execute(self, context: Context) -> Mapping[str, Any]:
        """Return days, blocks, events and seconds of this view."""
        views: Mapping[str, Mapping[str, Any]] = context["ti"].xcom_pull(task_ids=self.job).get("views", {})
        if self.task_id not in views:
            raise AirflowSkipException(f"nothing of `{self.task_id}` had to be computed")
        done = views[self.task_id]
        self.log.info("%s", "   ".join(f"{name} {value}" for name, value in done.items()))
        return done


_FIRST = 1_000
"""Priority of `publish`: readers wait for it, and nobody for the reports on views, each of which starts a process."""


def recompute_graph() -> None:
    """Add the tasks of a recompute to the current DAG."""
    views = registered_views()
    job = RecomputeStep(task_id="rebuild", step="compute", doc_md=RecomputeStep.__doc__)
    ChooseCut(task_id="choose_cut", step="plan", doc_md=ChooseCut.__doc__) >> job
    job >> Publish(
        task_id="publish",
        step="publish",
        doc_md=Publish.__doc__,
        outlets=[view_asset(view.name) for view in views],
        priority_weight=_FIRST,
        weight_rule=WeightRule.ABSOLUTE,
    )
    for view in views:
        ViewDone(task_id=view.name, job=job, doc_md=view.question)
