"""Update the Delta tables of corrected views to the current publication."""

from airflow.sdk import DAG

from dags.tasks.command import RETRIES, GalateaCommand, at

with DAG(
    "export_views",
    schedule=at("50 * * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="export", words=("export",))
