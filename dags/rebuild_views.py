"""Publish what was received since the last publication: hourly, or as Airflow's `[galatea] rebuild_schedule` says."""

from airflow.sdk import DAG, conf

from dags.tasks.command import DEFAULTS, at
from dags.tasks.recompute import recompute_graph

EVERY_HOUR = "0 * * * *"

with DAG(
    "rebuild_views",
    schedule=at(conf.get("galatea", "rebuild_schedule", fallback=EVERY_HOUR)),
    catchup=False,  # one rebuild brings everything that was missed
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=["galatea"],
    doc_md=__doc__,
):
    recompute_graph()
