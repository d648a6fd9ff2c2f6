"""Processes of one component share its parts: none has two processes, and those of a killed one are taken over."""

import time
from collections.abc import Sequence
from random import Random

import pytest
from cassandra import OperationTimedOut

from deploy.services import shared_work
from deploy.services.shared_work import LEASE_SECONDS, SharedWork
from master_dataset.errors import LeaseHeldError

TOPICS = ("pos_transactions", "people_counts", "queue_lengths", "store_visits", "wifi_sessions")


class Table:
    """Stands for LeaseTable: rows that expire. `is_away`: nobody answers."""

    def __init__(self) -> None:
        self.now, self.is_away = 0.0, False
        self.rows: dict[str, tuple[object, float]] = {}

    def lease(self, name: str, seconds: int) -> "FakeLease":
        return FakeLease(self, name, seconds)

    def show(self, name: str, seconds: int) -> None:
        self.put(name, name, seconds)

    def hide(self, name: str) -> None:
        self.alive().pop(name, None)

    def names(self) -> Sequence[str]:
        return list(self.alive())

    def put(self, name: str, holder: object, seconds: int) -> None:
        self.alive()[name] = (holder, self.now + seconds)

    def alive(self) -> dict[str, tuple[object, float]]:
        if self.is_away:
            raise OperationTimedOut
        self.rows = {name: (holder, until) for name, (holder, until) in self.rows.items() if until > self.now}
        return self.rows


class FakeLease:
    """Stands for Lease."""

    def __init__(self, table: Table, name: str, seconds: int) -> None:
        self._table, self._name, self._seconds = table, name, seconds

    def take(self) -> None:
        if self._name in self._table.alive():
            raise LeaseHeldError("another runs", do="wait")
        self._table.put(self._name, self, self._seconds)

    def renew(self) -> None:
        if not self._is_ours():
            raise LeaseHeldError("it was lost", do="wait")
        self._table.put(self._name, self, self._seconds)

    def release(self) -> None:
        if self._is_ours():
            self._table.hide(self._name)

    def _is_ours(self) -> bool:
        return self._table.alive().get(self._name, (None, 0))[0] is self


class Worker(SharedWork):
    """A process that begins and ends work at once. `is_suspended`: it does nothing, as one that swaps."""

    def __init__(self, table: Table, process: str, parts: Sequence[str] = TOPICS) -> None:
        super().__init__(table, "archive", parts, process)
        self.has_been_first, self.is_suspended = False, False

    def begin(self) -> "Worker":
        self.join(self._note_first)
        return self

    def _note_first(self) -> None:
        self.has_been_first = True

    def _keep_renewing(self) -> None:
        """The test does it."""

    def step(self) -> None:
        if self.is_suspended:
            return
        self.renew()
        for part in self.beyond_share():
            self.release(part)
        self.take()


def run(table: Table, workers: Sequence[Worker], seconds: float) -> None:
    for _ in range(int(seconds / 0.5)):
        table.now += 0.5
        for worker in workers:
            worker.step()


def test_one_process_does_everything() -> None:
    table = Table()
    alone = Worker(table, "a").begin()

    run(table, [alone], 0.5)

    assert alone.held == set(TOPICS)


def test_a_process_that_joins_gets_its_share_and_only_the_first_is_the_first() -> None:
    table = Table()
    first = Worker(table, "a").begin()
    run(table, [first], 1)

    second = Worker(table, "b").begin()
    run(table, [first, second], 1)

    assert (len(first.held), len(second.held)) == (3, 2)
    assert first.held | second.held == set(TOPICS)
    assert (first.has_been_first, second.has_been_first) == (True, False)


def test_the_parts_of_a_killed_process_are_taken_over_once_its_leases_have_expired() -> None:
    table = Table()
    first, second = Worker(table, "a").begin(), Worker(table, "b").begin()
    run(table, [first, second], 2)

    run(table, [second], LEASE_SECONDS + 0.5)

    assert second.held == set(TOPICS)


def test_what_a_process_releases_when_it_leaves_is_taken_at_once() -> None:
    table = Table()
    first, second = Worker(table, "a").begin(), Worker(table, "b").begin()
    run(table, [first, second], 2)

    first.leave()
    run(table, [second], 0.5)

    assert not first.held
    assert second.held == set(TOPICS)


def test_work_that_cannot_be_divided_has_one_process_and_others_wait() -> None:
    table = Table()
    first, second = Worker(table, "a", ["speed"]).begin(), Worker(table, "b", ["speed"]).begin()

    run(table, [first, second], 5)

    assert first.held == {"speed"}
    assert not second.held


def test_while_cassandra_does_not_answer_work_goes_on() -> None:
    table = Table()
    alone = Worker(table, "a").begin()
    run(table, [alone], 1)

    table.is_away = True
    table.now += 60
    with pytest.raises(OperationTimedOut):
        alone.renew()
    held = alone.held
    table.is_away = False
    run(table, [alone], 1)

    assert held == alone.held == set(TOPICS)


@pytest.mark.parametrize("seed", range(40))
def test_however_processes_come_and_go_each_part_gets_one_process_and_no_part_two(seed: int) -> None:
    random, table = Random(seed), Table()
    workers: list[Worker] = []
    for number in range(60):
        choice = random.random()
        if not workers or (choice < 0.2 and len(workers) < 5):
            workers.append(Worker(table, f"{number}").begin())
        elif choice < 0.3:
            workers.pop(random.randrange(len(workers)))  # killed
        elif choice < 0.35:
            workers.pop(random.randrange(len(workers))).leave()
        elif choice < 0.45:
            random.choice(workers).is_suspended ^= True
        random.shuffle(workers)
        run(table, workers, 0.5)
        active = [part for worker in workers if not worker.is_suspended for part in worker.held]
        assert len(active) == len(set(active))
    for worker in workers:
        worker.is_suspended = False
    run(table, workers, 2 * LEASE_SECONDS)

    held = [part for worker in workers for part in worker.held]
    assert sorted(held) == (sorted(TOPICS) if workers else [])
    assert all(len(worker.held) <= -(-len(TOPICS) // len(workers)) for worker in workers)


def test_what_ends_the_renewals_ends_the_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_work, "RENEW_SECONDS", 0.01)
    alone = SharedWork(Table(), "archive", TOPICS, "a")
    monkeypatch.setattr(alone, "renew", lambda: 1 / 0)

    alone.join()
    time.sleep(0.5)

    with pytest.raises(ZeroDivisionError):
        alone.take()
