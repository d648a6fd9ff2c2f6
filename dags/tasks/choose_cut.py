"""The first step: reach a cut, and write down what has to be computed at it."""

from collections.abc import Sequence

from airflow.sdk import Context

from dags.tasks.recompute_step import RecomputeStep
from views.control.recompute_request import RecomputeRequest

SCHEDULED = "scheduled"


class ChooseCut(RecomputeStep):
    """Runs `galatea recompute plan ID` with what the form of the DAG run was filled in with, if it has one."""

    def words(self, context: Context) -> Sequence[str]:
        """The step, options, id, views."""
        form, by = context["params"], filter(None, ("airflow", context["dag_run"].triggering_user_name))
        request = RecomputeRequest.from_form(form)
        said = (f"--why={form.get('reason', SCHEDULED)}", f"--by={'/'.join(by)}")
        return (*self.verb, "--json", *request.options(), *said, "--", self.id_of(context), *request.views)
