"""The last step: one switch of readers to all that was computed; of a preview, what it would change."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from dags.tasks.recompute_step import RecomputeStep
from dags.tasks.view_asset import view_asset

PREVIEWED, UNCHANGED = "previewed", "unchanged"


class Publish(RecomputeStep):
    """Runs `galatea recompute publish ID`, and tells Airflow which views were published: their assets, no others.

    So a DAG that is scheduled on a view's asset reads what is published, and never runs after a preview.
    """

    def words(self, context: Context) -> Sequence[str]:
        """A later try does all that is left: if another publication came first, the cells are computed again."""
        if context["ti"].try_number > 1:
            return ("rebuild", "--json", f"--id={self.id_of(context)}")
        return super().words(context)

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        """AirflowSkipException if there was nothing to publish."""
        shown = super().shown(answer, context)
        if shown["state"] == UNCHANGED:
            raise AirflowSkipException("nothing is new: what is published says it all")
        if shown["state"] == PREVIEWED:
            self.log.info("%s", json.dumps(answer, indent=2))
        published = () if shown["state"] == PREVIEWED else shown["views"]
        self.outlets = [view_asset(name) for name in published]
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"publication": shown["publication"], "cut": shown["cut"]}
        return shown
