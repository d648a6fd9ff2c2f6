"""DAGs of one command each, which keep the tables small, exported and verified."""

from collections.abc import Sequence
from typing import NamedTuple

from airflow.sdk import DAG

from dags.tasks.command import DEFAULTS, GalateaCommand, at

VERIFIED_DAYS = 3


class Command(NamedTuple):
    """What a DAG runs, and when.

    Attributes:
        dag: id of the DAG.
        cron: when it runs, in UTC.
        task: id of its only task.
        words: the arguments of `galatea`.
        about: what Airflow shows on the page of the DAG.
        is_retried: whether a task that failed is tried again.
    """

    dag: str
    cron: str
    task: str
    words: Sequence[str]
    about: str
    is_retried: bool = True


COMMANDS = (
    Command(
        "compact_master",
        "20 2 * * *",
        "compact",
        ("compact",),
        "Compact the many small files of the master dataset into a few large ones, while the archive keeps writing.",
    ),
    Command(
        "collect_garbage",
        "20 3 * * *",
        "collect",
        ("gc",),
        "Delete the cells of runs that no publication refers to any more.",
    ),
    Command(
        "verify_views",
        "20 4 * * *",
        "verify",
        ("verify", f"--sample={VERIFIED_DAYS}"),
        "Compare published answers with a recompute of some days, and fail if a single cell differs.\n\n"
        "It is not retried, because a difference that has disappeared at the second try is still a difference.",
        is_retried=False,
    ),
    Command(
        "export_views",
        "50 * * * *",
        "export",
        ("export",),
        "Update the Delta tables of corrected views to the current publication.",
    ),
)

for each in COMMANDS:
    with DAG(
        each.dag,
        schedule=at(each.cron),
        catchup=False,
        max_active_runs=1,
        default_args=DEFAULTS if each.is_retried else {**DEFAULTS, "retries": 0},
        tags=["galatea"],
        doc_md=each.about,
    ):
        GalateaCommand(task_id=each.task, words=each.words)
