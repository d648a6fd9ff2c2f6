"""Compare what readers are shown with a recompute of some days, and fail if a single cell differs.

It is not tried again: a difference that is gone at a second look is one all the same.
"""

from airflow.sdk import DAG

from dags.tasks.command import GalateaCommand, at
from dags.tasks.recompute import AGAIN

DAYS = 3

with DAG(
    "verify_views",
    schedule=at("20 4 * * *"),
    catchup=False,
    max_active_runs=1,
    default_args=AGAIN,
    tags=["galatea"],
    doc_md=__doc__,
):
    GalateaCommand(task_id="verify", words=("verify", f"--sample={DAYS}"), retries=0)
