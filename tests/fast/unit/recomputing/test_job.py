"""A step goes on with what its own plan has written, and with nothing else."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_layer.context import BatchContext
from batch_layer.plan import Plan
from batch_layer.recompute import job as job_file
from batch_layer.recompute.job import RecomputeJob
from deploy.batch import context_of
from deploy.settings import Settings
from master_dataset.errors import RecomputeNotSmallError, RecomputeRunningError, RequestError
from tests.fast.unit.recomputing.memory_recomputes import MemoryRecomputes
from views.control.publication import Pointer
from views.control.recompute import (
    BY_ITSELF,
    LATE_EVENTS_REASON,
    PlanNumber,
    Recompute,
    RecomputeRequest,
    Report,
    checked_id,
    owner,
    run_named,
)
from views.sales import SALES

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SETTINGS = Settings()


class Held:
    """The lock of a process that still holds it, or does not any more."""

    is_held = True

    def __init__(self, *_: object) -> None:
        """Of any recompute."""

    def __enter__(self) -> None:
        """It is held."""

    def __exit__(self, *_: object) -> None:
        """It is released."""

    def renew(self) -> bool:
        return self.is_held

    def lost(self) -> RecomputeRunningError:
        return RecomputeRunningError("it was taken over", do="wait")


def no_spark() -> Any:
    raise AssertionError("nothing is computed")


class Unseen:
    """Steps: nothing is shown."""

    def step(self, done: int, total: int, what: str) -> None:
        """Say nothing."""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RecomputeJob]:
    """A job for a recompute whose record has these values."""
    recomputes = MemoryRecomputes()
    recomputes.ask("mine")
    monkeypatch.setattr(BatchContext, "session", None)
    monkeypatch.setattr(job_file, "Recomputes", lambda _: recomputes)
    monkeypatch.setattr(job_file, "RecomputeLock", Held)

    def of(**values: Any) -> RecomputeJob:
        agreed = SETTINGS.definitions
        plan = Plan(Pointer(3, NOON, "run-3", 1, {}), NOON, [(SALES, {date(2026, 11, 20)})], {}, {}, 1, agreed)
        stored = plan.stored(2, "mine#2")
        recomputes.update("mine", "computed", **{"plan": stored, "updated_at": datetime.now(UTC)} | values)
        return RecomputeJob(context_of(SETTINGS), "mine", no_spark, Unseen())

    return of


def test_what_another_plan_has_computed_is_not_published(written: Callable[..., RecomputeJob]) -> None:
    job = written(report=Report(run="mine"))

    with pytest.raises(RequestError, match="not computed yet"):
        job.publish()


def test_a_process_that_lost_its_hold_publishes_nothing(
    written: Callable[..., RecomputeJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = written(report=Report(run="mine#2"))
    monkeypatch.setattr(Held, "is_held", False)

    with pytest.raises(RecomputeRunningError):
        job.publish()


def test_a_plan_that_is_too_old_is_forgotten_before_it_is_refused(written: Callable[..., RecomputeJob]) -> None:
    job = written(report=Report(run="mine#2"), updated_at=datetime.now(UTC) - timedelta(days=2))

    with pytest.raises(RequestError, match="an outdated one"):
        job.compute()

    assert job.record.plan == PlanNumber(2)


class Planned:
    """A planner that finds this many days."""

    def __init__(self, days: int) -> None:
        work = [(SALES, {NOON.date() - timedelta(days=number) for number in range(days)})]
        self._plan = Plan(Pointer(3, NOON, "run-3", 1, {}), NOON, work, {}, {}, 1, SETTINGS.definitions)

    def plan(self, *_: object) -> Plan:
        return self._plan


@pytest.mark.parametrize(
    ("by", "days", "state"),
    [(BY_ITSELF, SETTINGS.batch.prompt_correction_days + 1, "failed"), ("anna", 3650, "planned")],
)
def test_late_events_start_no_rebuild_of_more_days_than_agreed(
    by: str, days: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are archived after it is started, and before it is planned."""
    recomputes = MemoryRecomputes()
    recomputes.create(Recompute("mine", RecomputeRequest(), by, LATE_EVENTS_REASON, NOON, "asked"))
    monkeypatch.setattr(BatchContext, "session", None)
    monkeypatch.setattr(job_file, "Recomputes", lambda _: recomputes)
    monkeypatch.setattr(job_file, "RecomputeLock", Held)
    planner: Any = Planned(days)
    refused = None

    try:
        with RecomputeJob(context_of(SETTINGS), "mine", no_spark, Unseen(), planner) as job:
            job.plan()
    except RecomputeNotSmallError as error:
        refused = error.code

    problem = recomputes.find("mine").problem
    assert recomputes.find("mine").state == state
    assert (problem and problem.code) == refused == ("recompute_not_small" if state == "failed" else None)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,9}", fullmatch=True), st.integers(2, 99))
def test_a_run_of_a_later_plan_is_called_like_no_other_recompute(id_: str, number: int) -> None:
    run = run_named(id_, number)

    with pytest.raises(RequestError):
        checked_id(run)
    assert (owner(run), owner(run_named(id_, 1)), run_named(id_, 1)) == (id_, id_, id_)
