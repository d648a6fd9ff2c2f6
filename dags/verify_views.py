"""Compare published answers with a recompute of some days, and fail if a single cell differs.

It is not retried, because a difference that has disappeared at the second try is still a difference.
"""

from airflow.sdk import DAG

from dags.tasks.command import RETRIES, GalateaCommand, at

DAYS = 3

with DAG(
    "verify_views",
    schedule=at("20 4 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="verify", words=("verify", f"--sample={DAYS}"), retries=0)
