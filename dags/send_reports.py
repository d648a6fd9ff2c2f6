"""Send the reports that are due to those whom `GALATEA_REPORTS_FILE` names, each morning; nothing without that file.

A task that is tried again sends nobody the same report twice.
"""

from airflow.sdk import DAG

from dags.tasks.command import RETRIES, GalateaCommand, at

with DAG(
    "send_reports",
    schedule=at("10 6 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="send", words=("send-reports",))
