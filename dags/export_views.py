"""Bring the Delta tables of corrected views to the current publication, for whoever reads files."""

from airflow.sdk import DAG

from dags.tasks.command import GalateaCommand, at
from dags.tasks.recompute import AGAIN

with DAG(
    "export_views",
    schedule=at("50 * * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=AGAIN,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="export", words=("export",))
