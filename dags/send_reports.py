"""Send the reports that are due to those whom `GALATEA_REPORTS_FILE` names, each morning; nothing without that file.

A task that is tried again sends nobody the same report twice. XCom has how many got which report, and no addresses.
"""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Context

from dags.tasks.command import DEFAULTS, GalateaCommand, at

ADDRESSES = ("sent", "already_sent", "refused", "deferred")


class SendReports(GalateaCommand):
    """Passes on how many recipients there are, instead of who they are."""

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - signature of the base class
        """Of each report, without errors: they may name a recipient."""
        return {"reports": [_counted(each) for each in answer.get("reports", ())]}


def _counted(report: Mapping[str, Any]) -> dict[str, Any]:
    about = {name: report[name] for name in ("tenant", "period", "first", "last", "final") if name in report}
    return about | {name: len(report.get(name, ())) for name in ADDRESSES}


with DAG(
    "send_reports",
    schedule=at("10 6 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=["galatea"],
    doc_md=__doc__,
):
    SendReports(task_id="send", words=("send-reports",))
