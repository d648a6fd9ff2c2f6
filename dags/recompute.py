"""Recompute chosen views, days or stores: show what would change, or publish it.

It runs on demand only, and its form starts with a preview. Scheduled publications are the DAG `rebuild_views`, which
has no form.
"""

from airflow.sdk import DAG, Param

from dags.tasks.command import DEFAULTS
from dags.tasks.recompute import recompute_graph
from views import registered_views

NAMES = [view.name for view in registered_views()]
FORM = {
    "views": Param(
        [],
        type=["null", "array"],  # Airflow's form requires a field unless its type allows null
        items={"type": "string", "enum": NAMES},
        examples=NAMES,
        uniqueItems=True,
        title="Views",
        description="None selected: all views.",
    ),
    "from": Param(
        None,
        type=["null", "string"],
        format="date",
        title="First day",
        description="By when events happened, in UTC. Empty: from the first day.",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        format="date",
        title="Last day",
        description="Included. Empty: to the last day.",
    ),
    "stores": Param(
        [],
        type=["null", "array"],
        items={"type": "string", "minLength": 1, "maxLength": 256},
        uniqueItems=True,
        title="Stores",
        description="Ids, one per line. Empty: all stores.",
    ),
    "mode": Param(
        "preview",
        type="string",
        enum=["preview", "publish"],
        title="Mode",
        description="A preview shows what would change and publishes nothing. To publish, run it again with `publish`.",
    ),
    "full": Param(
        False,  # noqa: FBT003 - Airflow's signature
        type="boolean",
        title="Every day",
        description="Also days without new events.",
    ),
    "reason": Param(
        type="string",
        minLength=1,
        maxLength=500,
        title="Reason",
        description="Shown in the history and with the publication.",
    ),
}

with DAG(
    "recompute",
    schedule=None,
    params=FORM,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=["galatea"],
    doc_md=__doc__,
):
    recompute_graph()
