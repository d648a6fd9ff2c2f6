"""A DAG run and its recompute name each other."""

import pytest

from dags.tasks.recompute import recompute_id
from views.control.recompute import checked_id, new_id

SCHEDULED = "scheduled__2026-11-22T01:00:00+00:00"


def test_a_scheduled_run_is_named_with_its_dag() -> None:
    assert recompute_id("rebuild_views", SCHEDULED) == f"rebuild_views.{SCHEDULED}"


def test_a_run_that_rest_began_has_the_id_that_rest_gave() -> None:
    id_ = new_id()

    assert recompute_id("recompute", id_) == id_


@pytest.mark.parametrize("run", [SCHEDULED, "manual__x~y", "Ünï cødé; rm", "-", "_", "a" * 250, "é" * 300])
@pytest.mark.parametrize("dag", ["rebuild_views", "recompute"])
def test_every_run_has_an_id_that_the_command_takes(dag: str, run: str) -> None:
    assert checked_id(recompute_id(dag, run)) == recompute_id(dag, run)


def test_runs_that_differ_only_in_what_an_id_cannot_hold_do_not_share_one() -> None:
    assert recompute_id("recompute", "a~b") != recompute_id("recompute", "a!b")
    for run in (SCHEDULED, f"{SCHEDULED}~"):
        assert recompute_id("recompute", f"rebuild_views.{run}") != recompute_id("rebuild_views", run)
    assert recompute_id("recompute", "a" * 250) != recompute_id("recompute", "a" * 251)
