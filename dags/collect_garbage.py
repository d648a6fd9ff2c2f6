"""Take away what no publication can be asked for any more: cells of runs that nothing names."""

from airflow.sdk import DAG

from dags.tasks.command import GalateaCommand, at
from dags.tasks.recompute import AGAIN

with DAG(
    "collect_garbage",
    schedule=at("20 3 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=AGAIN,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="collect", words=("gc",))
