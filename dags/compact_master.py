"""Make few large files of many small ones in the master dataset. The archive goes on meanwhile."""

from airflow.sdk import DAG

from dags.tasks.command import GalateaCommand, at
from dags.tasks.recompute import AGAIN

with DAG(
    "compact_master",
    schedule=at("20 2 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=AGAIN,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="compact", words=("compact",))
