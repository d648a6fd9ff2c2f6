"""A whole recompute in one call: asked, planned, computed, published."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from batch_layer.recompute.recompute import Recompute, Recomputes, new_id
from deploy.cassandra import session_of
from deploy.recompute.attempt import Attempt
from deploy.recompute.failures import naming_failures
from deploy.recompute.planning import Steps
from views.control.recompute_request import RecomputeRequest

if TYPE_CHECKING:
    from deploy.settings import Settings


def ask(settings: "Settings", asked: RecomputeRequest, *, why: str, by: str, id_: str | None = None) -> str:
    """Write down what is asked, before anything is done; gives back the id. One of that id stays as it was asked."""
    recompute = Recompute(id_ or new_id(), asked, by, why, datetime.now(UTC), "asked")
    Recomputes(session_of(settings.cassandra_address)).create(recompute)
    return recompute.id


def carry_out(settings: "Settings", id_: str, steps: Steps) -> Recompute:
    """Do what is left of it. Spark starts while a cut is reached: it takes as long."""
    with Attempt(settings, id_, steps) as attempt, naming_failures(id_):
        if not attempt.has_ended:
            attempt.computing.start()
        for step in (attempt.plan, attempt.compute, attempt.publish):
            step()
        return attempt.found


def recompute(settings: "Settings", asked: RecomputeRequest, *, why: str, by: str, steps: Steps) -> Recompute:
    """Both."""
    return carry_out(settings, ask(settings, asked, why=why, by=by), steps)
