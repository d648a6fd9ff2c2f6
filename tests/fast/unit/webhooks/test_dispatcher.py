"""A group for each endpoint: begun when it is there, ended when it is gone, suspended when it fails for a day."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka import KafkaException
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from master_dataset.errors import CassandraUnavailableError
from master_dataset.webhooks.endpoint import Endpoint, EndpointState
from speed_layer.webhooks import dispatcher as dispatching
from speed_layer.webhooks.dispatcher import Dispatcher
from speed_layer.webhooks.endpoint_worker import SETTLED_SECONDS, DesiredEndpoint
from speed_layer.webhooks.start_position import PositionLostError

ONE = Endpoint("e1", "acme", "https://acme.example/", "secret")
TWO = Endpoint("e2", "globex", "https://globex.example/", "secret")
HOUR = 3600
PLACE = ("alerts", 0, 7)


class Table:
    """The endpoints. `is_away`: whether nobody answers."""

    def __init__(self, *endpoints: Endpoint) -> None:
        self.endpoints = list(endpoints)
        self.suspended: list[str] = []
        self.seen: list[tuple[str, EndpointState]] = []
        self.failing: dict[str, float] = {}
        self.skipped: dict[str, frozenset[tuple[str, int, int]]] = {}
        self.has_begun: list[str] = []
        self.is_away = self.cannot_suspend = False

    async def desired(self) -> Sequence[DesiredEndpoint]:
        if self.is_away:
            raise CassandraUnavailableError("nobody answers", do="wait")
        return [
            DesiredEndpoint(
                each,
                each.id in self.suspended,
                self.failing.get(each.id),
                self.skipped.get(each.id, frozenset()),
                each.id in self.has_begun,
            )
            for each in self.endpoints
        ]

    async def mark_begun(self, endpoint: Endpoint) -> None:
        self.has_begun.append(endpoint.id)

    async def suspend(self, endpoint: Endpoint) -> None:
        if self.cannot_suspend:
            raise CassandraUnavailableError("nobody answers", do="wait")
        self.suspended.append(endpoint.id)

    async def save_state(self, endpoint: Endpoint, state: EndpointState) -> None:
        self.seen.append((endpoint.id, state))


class Group:
    """Stands in for EndpointWorker. `lingers`: a call that is in progress when it is stopped."""

    def __init__(self, endpoint: Endpoint, log: list[str]) -> None:
        self.endpoint, self._log = endpoint, log
        self.failing_since: float | None = None
        self.refusing_since: datetime | None = None
        self.skipped: frozenset[tuple[str, int, int]] = frozenset()
        self.lingers = asyncio.Event()
        self.lingers.set()
        self.breaks: Exception | None = None
        self.stopped = asyncio.Event()

    def stop(self) -> None:
        self.stopped.set()

    def skip(self, places: frozenset[tuple[str, int, int]]) -> None:
        self.skipped = places

    def state(self, failing_since: float | None) -> EndpointState:
        failing = None if failing_since is None else datetime.fromtimestamp(failing_since, UTC)
        return EndpointState(failing, refusing_since=self.refusing_since)

    async def run(self) -> None:
        self._log.append(f"begins {self.endpoint.url}")
        if self.breaks:
            raise self.breaks
        await self.stopped.wait()
        await self.lingers.wait()
        self._log.append(f"ends {self.endpoint.url}")


class Played:
    """A dispatcher over groups that are played."""

    def __init__(self, *endpoints: Endpoint) -> None:
        self.table, self.log, self.groups, self.now = Table(*endpoints), [], {}, 1_000_000.0
        self.refuses: dict[str, Exception] = {}
        self.has_lost: set[str] = set()
        self.breaks: dict[str, Exception] = {}
        self.dispatcher = Dispatcher(self.table, self._group, now=lambda: self.now)

    log: list[str]
    groups: dict[str, Group]

    def _group(self, wanted: DesiredEndpoint) -> Group:
        endpoint = wanted.endpoint
        if endpoint.id in self.has_lost and wanted.has_begun:
            raise PositionLostError("the broker no longer knows where it stood", do="resume it")
        if endpoint.id in self.refuses:
            raise self.refuses[endpoint.id]
        group = self.groups[endpoint.id] = Group(endpoint, self.log)
        group.breaks = self.breaks.get(endpoint.id)
        return group

    async def reconcile(self, times: int = 1) -> None:
        for _ in range(times):
            await self.dispatcher.reconcile()
            while self.dispatcher.starting:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0)
            for _ in range(4):
                await asyncio.sleep(0)


def test_endpoints_come_and_go_and_one_that_changes_begins_anew() -> None:
    async def work() -> list[str]:
        played = Played(ONE)
        await played.reconcile()
        played.table.endpoints = [TWO, replace(ONE, url="https://other.example/")]
        await played.reconcile(2)
        played.table.endpoints = [TWO]
        await played.reconcile()
        return played.log

    log = asyncio.run(work())

    assert log[0] == "begins https://acme.example/"
    assert sorted(log[1:3]) == ["begins https://globex.example/", "ends https://acme.example/"]
    assert log[-2:] == ["begins https://other.example/", "ends https://other.example/"]


def test_one_that_changes_is_never_called_twice_at_once_and_nobody_waits_for_it() -> None:
    async def work() -> tuple[list[str], list[str]]:
        played = Played(ONE)
        await played.reconcile()
        played.groups["e1"].lingers.clear()
        played.table.endpoints = [replace(ONE, secret="another"), TWO]  # noqa: S106 - none
        await played.reconcile(3)
        meanwhile = list(played.log)
        played.groups["e1"].lingers.set()
        await played.reconcile(3)
        return meanwhile, played.log

    meanwhile, log = asyncio.run(work())

    assert meanwhile == ["begins https://acme.example/", "begins https://globex.example/"]
    assert log[2:] == ["ends https://acme.example/", "begins https://acme.example/"]


def test_one_that_has_failed_for_a_day_is_suspended_and_the_other_goes_on() -> None:
    async def work() -> Played:
        played = Played(ONE, TWO)
        await played.reconcile()
        played.groups["e1"].failing_since = played.now
        played.now += 24 * HOUR
        await played.reconcile()
        assert played.table.suspended == []
        played.now += 1
        await played.reconcile(2)
        return played

    played = asyncio.run(work())

    assert played.table.suspended == ["e1"]
    assert played.log[-1] == "ends https://acme.example/"
    assert not played.groups["e2"].stopped.is_set()
    assert dict(played.table.seen)["e1"].failing_since == datetime.fromtimestamp(1_000_000, UTC)


def test_the_gauge_counts_each_endpoint_in_the_state_that_is_shown_for_it() -> None:
    endpoints = [Endpoint(f"e{number}", "acme", "https://acme.example/", "secret") for number in range(7)]

    async def work() -> None:
        played = Played(*endpoints)
        played.table.suspended = ["e0"]
        await played.reconcile()
        played.groups["e1"].failing_since = played.now
        for id_ in ("e1", "e2", "e3"):
            played.groups[id_].refusing_since = datetime.fromtimestamp(played.now, UTC)
        await played.reconcile()

    asyncio.run(work())

    states = ("ok", "refusing", "retrying", "suspended")
    counted = [REGISTRY.get_sample_value("galatea_webhook_endpoints", {"state": state}) for state in states]
    assert dict(zip(states, counted, strict=True)) == {"ok": 3, "refusing": 2, "retrying": 1, "suspended": 1}


def test_one_that_is_resumed_begins_again() -> None:
    async def work() -> list[str]:
        played = Played(ONE)
        played.table.suspended = ["e1"]
        await played.reconcile()
        played.table.suspended = []
        await played.reconcile()
        return played.log

    assert asyncio.run(work()) == ["begins https://acme.example/"]


def test_a_process_that_begins_anew_goes_on_counting_the_failures_of_the_one_before() -> None:
    async def work(*, is_down: bool) -> tuple[list[str], list[EndpointState]]:
        played = Played(ONE)
        played.table.failing = {"e1": played.now - 25 * HOUR}
        await played.reconcile(2)
        assert played.table.suspended == []  # nobody has tried again yet
        played.groups["e1"].failing_since = played.now if is_down else None
        played.now += SETTLED_SECONDS + 1
        await played.reconcile(2)
        return played.table.suspended, [state for _, state in played.table.seen]

    down, delivered = asyncio.run(work(is_down=True))
    up, then = asyncio.run(work(is_down=False))

    assert (down, up) == (["e1"], [])
    assert delivered[-1].failing_since == datetime.fromtimestamp(1_000_000 - 25 * HOUR, UTC)
    assert then[-1].failing_since is None


def test_what_fails_no_more_under_the_next_process_is_well_after_a_minute() -> None:
    async def work() -> EndpointState:
        played = Played(ONE)
        played.table.failing = {"e1": played.now - HOUR}
        await played.reconcile()
        played.now += SETTLED_SECONDS + 1
        await played.reconcile()
        return played.table.seen[-1][1]

    assert asyncio.run(work()).failing_since is None


def test_records_to_skip_are_passed_to_running_and_starting_endpoints() -> None:
    async def work() -> Played:
        played = Played(ONE)
        await played.reconcile()
        played.table.endpoints.append(TWO)
        played.table.skipped = {"e1": frozenset({PLACE}), "e2": frozenset({PLACE})}
        await played.reconcile()
        return played

    played = asyncio.run(work())

    assert {id_: group.skipped for id_, group in played.groups.items()} == {"e1": {PLACE}, "e2": {PLACE}}


def test_how_one_is_doing_is_said_when_it_changes_and_now_and_then() -> None:
    async def work() -> int:
        played = Played(ONE)
        await played.reconcile(4)
        played.now += 31
        await played.reconcile()
        return len(played.table.seen)

    assert asyncio.run(work()) == 2


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


def test_a_group_that_a_failure_ends_begins_again_and_the_others_do_not_notice() -> None:
    async def work() -> list[str]:
        played = Played(ONE, TWO)
        played.breaks = {"e1": KafkaException("the broker is away")}
        await played.reconcile()
        played.breaks = {}
        await played.reconcile()
        return played.log

    assert sorted(asyncio.run(work())) == [*["begins https://acme.example/"] * 2, "begins https://globex.example/"]


def test_one_that_cannot_begin_is_tried_again_and_the_others_begin() -> None:
    async def work() -> tuple[list[str], list[str]]:
        played = Played(ONE, TWO)
        played.refuses = {"e1": KafkaException("the broker is away")}
        await played.reconcile()
        first = list(played.log)
        played.refuses = {}
        await played.reconcile()
        return first, played.log[len(first) :]

    assert asyncio.run(work()) == (["begins https://globex.example/"], ["begins https://acme.example/"])


class Hanging(Played):
    """The Kafka client answers nothing about the first endpoint until `answers` is set."""

    def __init__(self) -> None:
        super().__init__(ONE, TWO)
        self.answers = threading.Event()

    def _group(self, wanted: DesiredEndpoint) -> Group:
        if wanted.endpoint.id == "e1":
            assert self.answers.wait(20)
        return super()._group(wanted)

    async def begins(self, number: int) -> None:
        """Until so many groups have begun."""
        async with asyncio.timeout(10):
            while len(self.log) < number:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.001)

    async def settles(self) -> None:
        self.answers.set()
        await super().reconcile(2)


def test_a_start_that_hangs_holds_up_no_other_endpoint_and_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> tuple[list[str], list[str]]:
        played = Hanging()
        for _ in range(3):
            await played.dispatcher.reconcile()
        await played.begins(1)
        meanwhile = list(played.log)
        played.groups["e2"].failing_since = played.now
        await played.dispatcher.reconcile()
        assert dict(played.table.seen)["e2"].failing_since == datetime.fromtimestamp(played.now, UTC)
        assert played.dispatcher.starting == ["e1"]
        await played.settles()
        return meanwhile, played.log

    monkeypatch.setattr(dispatching, "START_SECONDS", 0)
    with capture_logs() as said:
        meanwhile, log = asyncio.run(work())

    assert meanwhile == ["begins https://globex.example/"]
    assert log == ["begins https://globex.example/", "begins https://acme.example/"]
    assert [(each["event"], each["endpoint"]) for each in said].count(("webhook.start_hangs", "e1")) == 1


def test_a_start_that_hangs_does_not_keep_the_dispatcher_from_leaving() -> None:
    played = Hanging()

    async def work() -> None:
        leaving = asyncio.Event()
        running = asyncio.ensure_future(played.dispatcher.run(leaving))
        await played.begins(1)
        leaving.set()
        await asyncio.wait_for(running, 10)

    asyncio.run(work())
    played.answers.set()

    assert played.log == ["begins https://globex.example/", "ends https://globex.example/"]


@pytest.mark.parametrize("changed", [[], [replace(ONE, url="https://other.example/")]], ids=["removed", "changed"])
def test_an_endpoint_that_is_changed_while_it_starts_is_never_called_as_it_was(changed: list[Endpoint]) -> None:
    async def work() -> list[str]:
        played = Hanging()
        await played.dispatcher.reconcile()
        await played.begins(1)
        started = played.groups
        played.table.endpoints = [TWO, *changed]
        await played.dispatcher.reconcile()
        await played.settles()
        assert all(group.stopped.is_set() for group in started.values() if group.endpoint == ONE)
        return [each for each in played.log if each.startswith("begins")]

    log = asyncio.run(work())

    assert [each for each in log if "other" in each] == [f"begins {each.url}" for each in changed]


def test_what_is_to_be_skipped_is_what_was_read_last_when_a_start_ends() -> None:
    async def work() -> frozenset[tuple[str, int, int]]:
        played = Hanging()
        await played.dispatcher.reconcile()
        played.table.skipped = {"e1": frozenset({PLACE})}
        await played.dispatcher.reconcile()
        played.answers.set()
        async with asyncio.timeout(10):
            while played.dispatcher.starting:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.001)
        return played.groups["e1"].skipped

    assert asyncio.run(work()) == {PLACE}


def test_an_error_that_nobody_foresaw_while_one_starts_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        played = Played(ONE)
        played.refuses = {"e1": ZeroDivisionError("a fault of ours")}
        await played.reconcile(2)

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        asyncio.run(work())
    for thread in threading.enumerate():
        if thread.name == "webhook-start":
            thread.join()


def test_that_one_has_begun_is_said_once() -> None:
    async def work() -> list[str]:
        played = Played(ONE, TWO)
        await played.reconcile(4)
        return played.table.has_begun

    assert sorted(asyncio.run(work())) == ["e1", "e2"]


def test_one_that_has_lost_its_place_is_suspended_and_begins_when_it_is_resumed_and_the_other_goes_on() -> None:
    async def work() -> tuple[Played, list[str]]:
        played = Played(ONE, TWO)
        played.table.has_begun, played.has_lost = ["e1"], {"e1"}
        played.table.cannot_suspend = True
        await played.reconcile(2)
        assert played.table.suspended == []
        played.table.cannot_suspend = False
        await played.reconcile(2)
        suspended = list(played.table.suspended)
        played.table.suspended, played.table.has_begun = [], []  # as it is when it is resumed
        await played.reconcile(2)
        return played, suspended

    played, suspended = asyncio.run(work())

    assert suspended == ["e1"]
    assert played.log == ["begins https://globex.example/", "begins https://acme.example/"]
    assert not played.groups["e2"].stopped.is_set()


def test_while_it_is_not_known_what_is_wanted_all_goes_on() -> None:
    async def work() -> Played:
        played = Played(ONE)
        await played.reconcile()
        played.table.is_away = True
        await played.reconcile(3)
        return played

    played = asyncio.run(work())

    assert played.log == ["begins https://acme.example/"]
    assert not played.groups["e1"].stopped.is_set()


def test_an_error_that_nobody_foresaw_ends_the_process_so_that_it_begins_anew() -> None:
    async def work() -> None:
        played = Played(ONE)
        played.breaks = {"e1": ZeroDivisionError("a fault of ours")}
        await played.reconcile(2)

    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        asyncio.run(work())
