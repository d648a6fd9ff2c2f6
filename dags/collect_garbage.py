"""Delete the cells of runs that no publication refers to any more."""

from airflow.sdk import DAG

from dags.tasks.command import RETRIES, GalateaCommand, at

with DAG(
    "collect_garbage",
    schedule=at("20 3 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="collect", words=("gc",))
