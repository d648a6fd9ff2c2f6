"""Refusals are sent to each network at a bounded rate; nothing else is delayed."""

import asyncio
from collections.abc import Sequence

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from serving_layer.http import refusal_pacing
from serving_layer.http.refusal_pacing import AT_ONCE, MOST_SECONDS, PER_SECOND, RefusalPace, RefusalPacing
from serving_layer.keys.throttle import MAX_COUNTED

HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"


class Clock:
    """Monotonic seconds."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_after_a_burst_a_network_is_refused_so_many_times_a_second(clock: Clock) -> None:
    pace = RefusalPace(clock)

    waits = [pace.seconds_to_wait(HERE) for _ in range(AT_ONCE + 1 + PER_SECOND)]

    assert waits[: AT_ONCE + 1] == [0.0] * (AT_ONCE + 1)
    assert waits[AT_ONCE + 1 :] == pytest.approx([number / PER_SECOND for number in range(1, PER_SECOND + 1)])
    assert pace.seconds_to_wait(ELSEWHERE) == 0


def test_a_flood_is_answered_at_that_rate_however_fast_it_asks(clock: Clock) -> None:
    pace, sent, seconds = RefusalPace(clock), list[float](), 5
    for _ in range(1_000 * seconds):
        sent.append(clock.now + pace.seconds_to_wait(HERE))
        clock.now += 0.001

    assert sum(each < 1000 + seconds for each in sent) <= AT_ONCE + 1 + PER_SECOND * seconds


def test_no_refusal_waits_longer_than_the_most_and_who_paused_does_not_wait(clock: Clock) -> None:
    pace = RefusalPace(clock)
    waits = [pace.seconds_to_wait(HERE) for _ in range(10_000)]
    clock.now += MOST_SECONDS + AT_ONCE / PER_SECOND

    assert max(waits) == MOST_SECONDS
    assert pace.seconds_to_wait(HERE) == 0


def test_it_forgets_networks_that_were_refused_long_ago(clock: Clock) -> None:
    pace = RefusalPace(clock)
    for number in range(MAX_COUNTED + 10):
        pace.seconds_to_wait(f"net-{number}")

    assert len(pace._due) == MAX_COUNTED  # noqa: SLF001 - how much it keeps


class Process:
    """A process that answers with one status, and how long its answers waited."""

    def __init__(self, status: int, clock: Clock) -> None:
        self.slept: list[float] = []
        self.sent: list[int] = []
        self._status = status
        self._app = RefusalPacing(self._answer, clock, self._sleep)
        self.waits_for: asyncio.Event | None = None

    async def ask(self, address: str | None, count: int = 1) -> None:
        for _ in range(count):
            client = None if address is None else (address, 1234)
            await self._app({"type": "http", "client": client}, _nothing, self._send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Response(status_code=self._status)(scope, receive, send)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.waits_for:
            await self.waits_for.wait()

    async def _send(self, message: object) -> None:
        assert isinstance(message, dict)
        if message["type"] == "http.response.start":
            self.sent.append(message["status"])


async def _nothing() -> dict[str, object]:
    return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("status", "is_delayed"), [(401, True), (403, True), (421, True), (429, True), (200, False), (404, False)]
)
def test_only_refusals_are_delayed(status: int, clock: Clock, *, is_delayed: bool) -> None:
    process = Process(status, clock)
    asyncio.run(process.ask(HERE, AT_ONCE + 2))

    assert process.sent == [status] * (AT_ONCE + 2)
    assert bool(process.slept) is is_delayed


@pytest.mark.parametrize("others", [["::ffff:192.0.2.1"], ["2001:db8::1", "2001:db8::2"]])
def test_addresses_of_one_network_are_one(others: Sequence[str], clock: Clock) -> None:
    process = Process(401, clock)

    async def all_of() -> None:
        await process.ask(HERE if len(others) == 1 else others[0], AT_ONCE + 1)
        assert not process.slept
        await process.ask(others[-1])

    asyncio.run(all_of())
    assert process.slept == pytest.approx([1 / PER_SECOND])


def test_a_client_without_an_address_is_not_delayed(clock: Clock) -> None:
    process = Process(401, clock)
    asyncio.run(process.ask(None, AT_ONCE + 2))

    assert not process.slept


def test_only_so_many_wait_at_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_pacing, "MOST_WAITING", 3)
    process = Process(429, clock)

    async def all_of() -> int:
        await process.ask(HERE, AT_ONCE + 1)
        process.waits_for, before = asyncio.Event(), len(process.sent)
        asking = [asyncio.ensure_future(process.ask(HERE)) for _ in range(5)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sent = len(process.sent) - before
        process.waits_for.set()
        await asyncio.gather(*asking)
        return sent

    assert asyncio.run(all_of()) == 2
    assert len(process.slept) == 3
