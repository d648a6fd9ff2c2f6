"""Recompute chosen views, days or stores, and publish them or show what that would change."""

from airflow.sdk import DAG, Param

from dags.tasks.command import RETRIES
from dags.tasks.recompute import recompute_graph
from views import registered_views

NAMES = [view.name for view in registered_views()]
FORM = {
    "views": Param(
        [],
        type="array",
        items={"type": "string", "enum": NAMES},
        examples=NAMES,
        uniqueItems=True,
        title="Views",
        description="All views if none is chosen.",
    ),
    "from": Param(
        None,
        type=["null", "string"],
        format="date",
        title="First day",
        description="UTC day of `happened_at`, included. Empty: from the first one.",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        format="date",
        title="Last day",
        description="UTC day of `happened_at`, included. Empty: to the last one.",
    ),
    "stores": Param(
        [],
        type="array",
        items={"type": "string", "minLength": 1, "maxLength": 256},
        uniqueItems=True,
        title="Stores",
        description="Ids, one a line: only days on which one of them has events. Empty: all stores.",
    ),
    "mode": Param(
        "publish",
        type="string",
        enum=["publish", "preview"],
        title="Mode",
        description="A preview shows what would change, and publishes nothing.",
    ),
    "full": Param(
        False,  # noqa: FBT003 - Airflow's signature
        type="boolean",
        title="Full",
        description="Compute every day again, not only those that were touched.",
    ),
    "reason": Param(
        type="string",
        minLength=1,
        maxLength=500,
        title="Reason",
        description="Kept with the publication.",
    ),
}

with DAG(
    "recompute",
    schedule=None,
    params=FORM,
    max_active_runs=1,
    default_args=RETRIES,
    tags=["galatea"],
    doc_md=__doc__,
):
    recompute_graph()
