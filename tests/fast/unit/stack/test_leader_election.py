"""Of several dispatchers one works; another takes over when it is gone."""

import asyncio
from collections.abc import Callable

import pytest
from cassandra import OperationTimedOut

from deploy.services import dispatcher
from deploy.services.dispatcher import LeaderElection
from master_dataset.errors import LeaseHeldError


class Row:
    """The row that says who holds the lease. `is_away`: nobody answers."""

    def __init__(self) -> None:
        self.holder: object = None
        self.is_away = False


class FakeLease:
    """Stands for Lease."""

    def __init__(self, row: Row) -> None:
        self._row = row

    def take(self) -> None:
        self._answer()
        if self._row.holder not in (None, self):
            raise LeaseHeldError("another runs", do="wait")
        self._row.holder = self

    def renew(self) -> None:
        self._answer()
        if self._row.holder is not self:
            raise LeaseHeldError("another runs, or it was lost", do="wait")

    def release(self) -> None:
        self._answer()
        if self._row.holder is self:
            self._row.holder = None

    def _answer(self) -> None:
        if self._row.is_away:
            raise OperationTimedOut


class Worker:
    """One that was started. `begun`: how often it has worked; `breaks`: what its work ends with."""

    def __init__(self, row: Row) -> None:
        self.lease, self.leaving = FakeLease(row), asyncio.Event()
        self.begun, self.is_working = 0, False
        self.breaks: Exception | None = None
        self.task = asyncio.ensure_future(LeaderElection(self.lease).work(self.leaving, self.work))

    async def work(self, ending: asyncio.Event) -> None:
        self.begun, self.is_working = self.begun + 1, True
        if self.breaks:
            raise self.breaks
        await ending.wait()
        self.is_working = False

    async def leave(self) -> None:
        self.leaving.set()
        await self.task


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not done():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "RENEW_SECONDS", 0.002)


def test_of_two_one_works_and_the_other_begins_when_it_has_left() -> None:
    async def work() -> tuple[int, int]:
        row = Row()
        first = Worker(row)
        await until(lambda: first.is_working)
        second = Worker(row)
        await asyncio.sleep(0.05)
        meanwhile = second.begun
        await first.leave()
        await until(lambda: second.is_working)
        await second.leave()
        return meanwhile, second.begun

    assert asyncio.run(work()) == (0, 1)


def test_one_whose_lease_another_has_taken_ends_its_work_and_waits() -> None:
    async def work() -> int:
        row = Row()
        first = Worker(row)
        await until(lambda: first.is_working)
        row.holder = "another"
        await until(lambda: not first.is_working)
        row.holder = None
        await until(lambda: first.is_working)
        await first.leave()
        return first.begun

    assert asyncio.run(work()) == 2


def test_a_lease_that_has_lapsed_and_that_nobody_took_is_taken_again_and_the_work_goes_on() -> None:
    async def work() -> int:
        row = Row()
        first = Worker(row)
        await until(lambda: first.is_working)
        row.holder = None
        await until(lambda: row.holder is first.lease)
        await first.leave()
        return first.begun

    assert asyncio.run(work()) == 1


def test_while_the_lease_is_unknown_the_work_goes_on_and_none_begins() -> None:
    async def work() -> tuple[bool, int, int]:
        row = Row()
        first = Worker(row)
        await until(lambda: first.is_working)
        row.is_away = True
        second = Worker(row)
        await asyncio.sleep(0.05)
        goes_on = first.is_working
        await second.leave()
        await first.leave()
        return goes_on, first.begun, second.begun

    assert asyncio.run(work()) == (True, 1, 0)


def test_what_breaks_the_work_is_raised_and_the_next_one_need_not_wait() -> None:
    async def work() -> Row:
        row = Row()
        first = Worker(row)
        first.breaks = ZeroDivisionError("a fault of ours")
        with pytest.raises(ZeroDivisionError):
            await first.task
        return row

    assert asyncio.run(work()).holder is None
