"""Late events start a small rebuild: once per pause of all processes together, if nothing speaks against it."""

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from batch_layer.prompt_correction import LONGEST_PAUSE_SECONDS, LeftBecause, Limits, PromptCorrection
from master_dataset.errors import LeaseHeldError
from serving_layer.errors import TooBusyError
from views.control.publication import Pointer
from views.control.recompute import Problem, Recompute, RecomputeRequest, State

BEGIN = datetime(2026, 11, 21, 9, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
EPOCH = 5 * MINUTE
DELAY = 10 * SECOND
PAUSE, LEASE = 60, 60
DUE = EPOCH + DELAY
"""After the start of an epoch."""


class Deployment:
    """Stands for everything around prompt correction, with a clock that only `passes` moves."""

    def __init__(self) -> None:
        self.at = BEGIN
        self.publication, self.cut = 1, BEGIN
        self.late: list[datetime] = []
        self.left: dict[int, LeftBecause] = {}
        self.failed: list[str] = []
        self.is_busy = False
        self.why: LeftBecause | None = None
        self.refuses = False
        self.runs: dict[str, Recompute] = {}
        self.started_at: list[datetime] = []
        self.holder: object = None
        self.held_until = BEGIN

    def pointer(self) -> Pointer:
        return Pointer(self.publication, self.cut, "run", 1, {})

    def oldest_late_epoch(self, since: datetime) -> datetime | None:
        return min((epoch for epoch in self.late if epoch >= since), default=None)

    def is_left(self, pointer: Pointer) -> bool:
        return pointer.publication in self.left

    def leave(self, publication: int, why: LeftBecause) -> None:
        self.left[publication] = why

    def fail(self, publication: int, problem: str) -> None:
        self.failed.append(f"{publication}: {problem}")

    def other_work(self) -> str | None:
        return "a run in Airflow" if self.is_busy else None

    def reason_to_leave(self) -> LeftBecause | None:
        return self.why

    def recompute(self, id_: str) -> Recompute:
        return self.runs[id_]

    def start(self) -> str:
        if self.refuses:
            raise TooBusyError("100 recomputes are already waiting.", do="wait")
        id_ = f"recompute-{len(self.started_at)}"
        self.started_at.append(self.at)
        self.runs[id_] = Recompute(id_, RecomputeRequest(), "galatea", "late events", self.at, "asked")
        return id_

    def ends(self, state: State = "published", problem: Problem | None = None) -> None:
        """The recompute that runs ends, and has published at the newest cut."""
        [id_] = [id_ for id_, each in self.runs.items() if each.state == "asked"]
        self.runs[id_] = Recompute(id_, RecomputeRequest(), "galatea", "late events", self.at, state, problem=problem)
        if state == "published":
            self.publishes()

    def publishes(self) -> None:
        """Somebody publishes at the newest cut."""
        self.publication += 1
        self.cut = BEGIN + (self.at - BEGIN) // EPOCH * EPOCH

    def passes(self, time: timedelta, *processes: PromptCorrection) -> None:
        """The time passes, in seconds; each process looks in each of them."""
        for _ in range(time // SECOND):
            self.at += SECOND
            for each in processes:
                each.step()

    def process(self) -> PromptCorrection:
        return PromptCorrection(self, lambda: FakeLease(self), Limits(EPOCH, DELAY, PAUSE), self.start, lambda: self.at)


class FakeLease:
    """A lease that expires by the clock of the deployment. As the real one, it can be taken again by its holder."""

    def __init__(self, of: Deployment) -> None:
        self._of = of

    def take(self) -> None:
        if self._of.held_until > self._of.at and self._of.holder is not self:
            raise LeaseHeldError("another runs", do="wait")
        self._hold(LEASE)

    def renew(self, seconds: int | None = None) -> None:
        if self._of.holder is not self or self._of.held_until <= self._of.at:
            raise LeaseHeldError("it was lost", do="wait")
        self._hold(seconds or LEASE)

    def release(self) -> None:
        self._of.held_until = self._of.at

    def _hold(self, seconds: int) -> None:
        self._of.holder, self._of.held_until = self, self._of.at + seconds * SECOND


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


def test_an_epoch_with_late_events_starts_one_rebuild_once_a_cut_can_cover_it(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late = [BEGIN]

    deployment.passes(DUE - SECOND, process)
    before = list(deployment.started_at)
    deployment.passes(MINUTE, process)

    assert before == []
    assert deployment.started_at == [BEGIN + DUE]


def test_a_rebuild_that_is_no_longer_small_when_it_is_planned_leaves_its_events_to_the_schedule(
    deployment: Deployment,
) -> None:
    process = deployment.process()
    deployment.late = [BEGIN]
    deployment.passes(DUE, process)

    deployment.ends("failed", Problem("recompute_not_small", "late events would recompute 3650 days now"))
    deployment.passes(10 * MINUTE, process)

    assert deployment.left == {1: LeftBecause.NOT_SMALL}
    assert (deployment.failed, len(deployment.started_at)) == ([], 1)


def test_late_events_of_many_epochs_start_one_rebuild(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late = [BEGIN, BEGIN + EPOCH]
    deployment.at = BEGIN + 3 * EPOCH

    deployment.passes(MINUTE, process)
    deployment.ends()
    deployment.passes(EPOCH, process)

    assert len(deployment.started_at) == 1


def test_nothing_starts_without_late_events_or_before_the_first_publication(deployment: Deployment) -> None:
    process = deployment.process()

    deployment.passes(2 * EPOCH, process)
    deployment.publication, deployment.late = 0, [BEGIN]
    deployment.passes(2 * EPOCH, process)

    assert deployment.started_at == []


def test_late_events_that_another_publication_covers_start_nothing(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late = [BEGIN]
    deployment.passes(EPOCH, process)

    deployment.publishes()
    deployment.passes(EPOCH, process)

    assert deployment.started_at == []


def test_late_events_that_keep_arriving_start_a_rebuild_per_epoch_and_never_two_at_once(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late = [BEGIN + number * EPOCH for number in range(4)]

    deployment.passes(2 * EPOCH, process)  # it takes longer than an epoch
    at_once = len(deployment.started_at)
    deployment.ends()
    deployment.passes(timedelta(seconds=PAUSE - 1), process)
    in_the_pause = len(deployment.started_at)
    deployment.passes(EPOCH, process)

    assert (at_once, in_the_pause, len(deployment.started_at)) == (1, 1, 2)
    assert deployment.started_at[1] - BEGIN >= 2 * EPOCH + timedelta(seconds=PAUSE)


def test_of_several_processes_one_starts_it_and_the_pause_is_one_for_all(deployment: Deployment) -> None:
    processes = [deployment.process() for _ in range(3)]
    deployment.late = [BEGIN]
    deployment.passes(DUE + MINUTE, *processes)
    at_once = len(deployment.started_at)

    deployment.late += [BEGIN + EPOCH]
    deployment.passes(EPOCH, *processes)
    deployment.ends()
    ended_at = deployment.at
    deployment.late += [BEGIN + 2 * EPOCH]
    deployment.passes(2 * EPOCH, *processes)

    assert at_once == 1
    assert len(deployment.started_at) == 2
    assert deployment.started_at[1] - ended_at > timedelta(seconds=PAUSE)


def test_one_whose_process_was_killed_is_started_again_by_another_after_the_pause(deployment: Deployment) -> None:
    deployment.late = [BEGIN]
    deployment.passes(DUE + 10 * SECOND, deployment.process())  # which is killed now
    killed_at = deployment.at

    deployment.passes(timedelta(seconds=2 * LEASE), deployment.process())

    assert len(deployment.started_at) == 2
    assert deployment.started_at[1] - killed_at == timedelta(seconds=LEASE)


def test_while_another_rebuild_is_under_way_none_starts_and_none_is_needed_after_it(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late, deployment.is_busy = [BEGIN], True
    deployment.passes(2 * EPOCH, process)
    meanwhile = list(deployment.started_at)

    deployment.publishes()
    deployment.is_busy = False
    deployment.passes(2 * EPOCH, process)

    assert (meanwhile, deployment.started_at) == ([], [])


def test_it_starts_as_soon_as_another_rebuild_that_failed_has_ended(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late, deployment.is_busy = [BEGIN], True
    deployment.passes(2 * EPOCH, process)

    deployment.is_busy = False
    deployment.passes(SECOND, process)

    assert deployment.started_at == [BEGIN + 2 * EPOCH + SECOND]


def test_a_long_wait_for_other_work_is_said_and_for_what(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late, deployment.is_busy = [BEGIN], True

    with capture_logs() as logs:
        deployment.passes(DUE + 14 * MINUTE, process)
        early = len(logs)
        deployment.passes(17 * MINUTE, process)
        waited = REGISTRY.get_sample_value("galatea_prompt_correction_waiting_seconds")
        deployment.is_busy = False
        deployment.passes(2 * SECOND, process)

    waiting = [each for each in logs if each["event"] == "prompt_correction.waiting"]
    assert (early, [each["waits_for"] for each in waiting]) == (0, ["a run in Airflow"] * 2)
    assert waiting[0]["since"] == (BEGIN + DUE).isoformat()
    assert waited == 31 * 60
    assert REGISTRY.get_sample_value("galatea_prompt_correction_waiting_seconds") == 0
    assert len(deployment.started_at) == 1


def test_waits_that_others_have_ended_do_not_add_up(deployment: Deployment) -> None:
    process = deployment.process()

    with capture_logs() as logs:
        for _ in range(3):
            deployment.late, deployment.is_busy = [deployment.cut], True
            deployment.passes(DUE + 10 * MINUTE, process)
            deployment.publishes()
            deployment.passes(SECOND, process)

    assert logs == []


@pytest.mark.parametrize("why", list(LeftBecause))
def test_what_is_left_to_the_schedule_is_said_once_and_looked_at_again_after_a_publication(
    deployment: Deployment, why: LeftBecause
) -> None:
    processes = [deployment.process(), deployment.process()]
    deployment.late, deployment.why = [BEGIN], why
    deployment.passes(3 * EPOCH, *processes)
    left, started = dict(deployment.left), list(deployment.started_at)

    deployment.why = None
    deployment.passes(EPOCH, *processes)
    still = list(deployment.started_at)
    deployment.publishes()
    deployment.late += [deployment.at]
    deployment.passes(DUE, *processes)

    assert (left, started, still) == ({1: why}, [], [])
    assert len(deployment.started_at) == 1


def test_one_that_fails_says_why_and_is_tried_again_after_ever_longer_pauses(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late = [BEGIN]
    deployment.passes(DUE, process)
    for _ in range(6):
        deployment.ends("failed", Problem("broker_unavailable", "Kafka does not answer"))
        deployment.passes(timedelta(seconds=LONGEST_PAUSE_SECONDS + 2), process)

    pauses = [after - before for before, after in zip(deployment.started_at, deployment.started_at[1:], strict=False)]
    assert len(deployment.started_at) == 7
    assert deployment.failed[0] == "1: recompute `recompute-0`: Kafka does not answer"
    assert all(timedelta(seconds=2 * PAUSE) < pause for pause in pauses)
    assert pauses[-1] <= timedelta(seconds=LONGEST_PAUSE_SECONDS + 2)


def test_one_that_cannot_be_started_is_tried_again_when_the_lease_has_expired(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late, deployment.refuses = [BEGIN], True
    deployment.passes(DUE - SECOND, process)

    with pytest.raises(TooBusyError):
        deployment.passes(SECOND, process)
    deployment.refuses = False
    deployment.passes(timedelta(seconds=LEASE), process)

    assert deployment.started_at == [BEGIN + DUE + timedelta(seconds=LEASE)]


def test_a_lease_that_was_lost_while_cassandra_was_away_starts_no_second_one(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.late = [BEGIN]
    deployment.passes(DUE, process)

    deployment.at += timedelta(seconds=10 * LEASE)  # nobody could renew it
    deployment.passes(MINUTE, process, deployment.process())

    assert len(deployment.started_at) == 1
    assert deployment.held_until == deployment.at + timedelta(seconds=LEASE)
