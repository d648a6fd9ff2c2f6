"""A group for each endpoint: begun when it is there, ended when it is gone, suspended when it fails for a day."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from master_dataset.consuming import Consuming
from master_dataset.endpoint import Endpoint
from speed_layer.webhooks.dispatcher import Dispatcher

ONE = Endpoint("e1", "acme", "https://acme.example/", "secret")
TWO = Endpoint("e2", "globex", "https://globex.example/", "secret")


class Table:
    """The endpoints."""

    def __init__(self, *endpoints: Endpoint) -> None:
        self.endpoints = list(endpoints)
        self.suspended: list[tuple[str, float]] = []
        self.seen: dict[str, tuple[float | None, int]] = {}

    async def active(self) -> Sequence[Endpoint]:
        return [each for each in self.endpoints if each.id not in dict(self.suspended)]

    async def suspend(self, endpoint: Endpoint, since: float) -> None:
        self.suspended.append((endpoint.id, since))

    async def see(self, endpoint: Endpoint, failing_since: float | None, waiting: int) -> None:
        self.seen[endpoint.id] = (failing_since, waiting)


class Group:
    """Stands for Consuming."""

    def __init__(self, endpoint: Endpoint, log: list[str]) -> None:
        self.endpoint, self._log = endpoint, log
        self.failing_since: float | None = None
        self.waiting = 3
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        self._log.append(f"begins {self.endpoint.url}")
        await self._stopped.wait()
        self._log.append(f"ends {self.endpoint.url}")


class Played:
    """A dispatcher over groups that are played."""

    def __init__(self, *endpoints: Endpoint) -> None:
        self.table, self.log, self.groups, self.now = Table(*endpoints), [], {}, 1_000_000.0
        self.dispatcher = Dispatcher(self.table, self._group, lambda: self.now)

    log: list[str]
    groups: dict[str, Group]

    def _group(self, endpoint: Endpoint) -> Consuming:
        group = self.groups[endpoint.id] = Group(endpoint, self.log)
        return group  # type: ignore[return-value]

    async def look(self) -> None:
        await self.dispatcher.look()
        await asyncio.sleep(0)


def test_endpoints_come_and_go_and_one_that_changes_begins_anew() -> None:
    async def work() -> list[str]:
        played = Played(ONE)
        await played.look()
        played.table.endpoints = [TWO, replace(ONE, url="https://other.example/")]
        await played.look()
        played.table.endpoints = [TWO]
        await played.look()
        return played.log

    assert asyncio.run(work()) == [
        "begins https://acme.example/",
        "ends https://acme.example/",
        "begins https://globex.example/",
        "begins https://other.example/",
        "ends https://other.example/",
    ]


def test_one_that_has_failed_for_a_day_is_suspended_and_the_other_goes_on() -> None:
    async def work() -> Played:
        played = Played(ONE, TWO)
        await played.look()
        played.groups["e1"].failing_since = played.now
        played.now += 23 * 3600
        await played.look()
        assert (played.table.suspended, played.table.seen["e1"]) == ([], (1_000_000.0, 3))
        played.now += 2 * 3600
        await played.look()
        return played

    played = asyncio.run(work())

    assert played.table.suspended == [("e1", 1_000_000.0)]
    assert played.log[-1] == "ends https://acme.example/"
    assert played.dispatcher.states() == {"e2": None}


def test_one_that_is_resumed_begins_again() -> None:
    async def work() -> list[str]:
        played = Played(ONE)
        played.table.suspended = [("e1", 0.0)]
        await played.look()
        played.table.suspended = []
        await played.look()
        return played.log

    assert asyncio.run(work()) == ["begins https://acme.example/"]


def test_leaving_ends_all_of_them() -> None:
    async def work() -> list[str]:
        played, leaving = Played(ONE, TWO), asyncio.Event()
        running = asyncio.ensure_future(played.dispatcher.run(leaving))
        while len(played.log) < 2:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)
        leaving.set()
        await running
        return sorted(played.log[2:])

    assert asyncio.run(work()) == ["ends https://acme.example/", "ends https://globex.example/"]


def test_what_breaks_a_group_breaks_the_dispatcher_so_that_its_process_begins_again() -> None:
    class Broken(Group):
        async def run(self) -> None:
            raise OSError("disk")

    async def work() -> None:
        played = Played(ONE)
        played.dispatcher = Dispatcher(played.table, lambda each: Broken(each, played.log))  # type: ignore[arg-type, return-value]
        await played.look()
        await played.look()

    with pytest.raises(OSError, match="disk"):
        asyncio.run(work())
