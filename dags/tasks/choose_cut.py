"""The first step: reach a cut, and write down what has to be computed at it."""

from collections.abc import Iterator, Sequence

from airflow.sdk import Context

from dags.tasks.recompute_step import RecomputeStep

SCHEDULED = "scheduled"


class ChooseCut(RecomputeStep):
    """Runs `galatea recompute plan ID` with what the form of the DAG run was filled in with, if it has one."""

    def words(self, context: Context) -> Sequence[str]:
        """The step, options, id, views."""
        views = context["params"].get("views", ())
        return (*self.verb, "--json", *self._options(context), "--", self.id_of(context), *views)

    @staticmethod
    def _options(context: Context) -> Iterator[str]:
        asked, run = context["params"], context["dag_run"]
        for name in ("from", "to"):
            if asked.get(name):
                yield f"--{name}={asked[name]}"
        yield from (f"--store={store}" for store in asked.get("stores", ()))
        if asked.get("full"):
            yield "--full"
        if asked.get("mode") == "preview":
            yield "--dry-run"
        yield f"--why={asked.get('reason', SCHEDULED)}"
        yield f"--by={'/'.join(('airflow', *filter(None, [run.triggering_user_name])))}"
