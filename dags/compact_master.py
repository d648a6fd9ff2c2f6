"""Compact the many small files of the master dataset into a few large ones, while the archive keeps writing."""

from airflow.sdk import DAG

from dags.tasks.command import RETRIES, GalateaCommand, at

with DAG(
    "compact_master",
    schedule=at("20 2 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="compact", words=("compact",))
