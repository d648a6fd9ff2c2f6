"""Connections that send or read nothing are closed, and others are served in the meantime."""

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
from prometheus_client import REGISTRY
from starlette.types import Receive, Scope, Send

from serving_layer.http.connections import CHECK_BATCH, ConnectionLimits, Connections
from serving_layer.ingest import ingest
from serving_layer.limits import Limits
from tests.support import World
from tests.support.corpus.case import receipt
from tests.support.raw_http import PATIENCE_SECONDS, Wire, wire
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import listening, served
from tests.system.drills.attackers import Attackers

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /v1/events/pos_transactions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
KEY = f"Authorization: Bearer {OPERATOR_KEY}\r\n".encode()
LARGE = b"x" * 16_000_000
"""More than two sockets hold between them."""


def posted(body: bytes = b"", length: int | None = None) -> bytes:
    return POST + KEY + b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


def ended(why: str) -> float:
    return REGISTRY.get_sample_value("galatea_connections_ended_total", {"why": why}) or 0


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)


async def large(scope: Scope, _: Receive, send: Send) -> None:
    """An application with one answer, which is large."""
    assert scope["type"] == "http"
    headers = [(b"content-length", b"%d" % len(LARGE))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": LARGE})


@contextmanager
def deaf(url: str) -> Iterator[Wire]:
    """A client that asks and does not read."""
    with wire(url) as spoken:
        spoken.connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        spoken.say(GET)
        yield spoken


@pytest.mark.parametrize("others", [1, 2])
def test_one_connection_more_than_there_may_be_ends_the_one_that_waits_longest(others: int) -> None:
    with served(Asking(World()), ConnectionLimits(connections=3)) as url, ExitStack() as open_:
        first = open_.enter_context(wire(url))
        first.say(GET)
        first.listen(1)
        waiting = [open_.enter_context(wire(url)) for _ in range(others)]

        last = open_.enter_context(wire(url))
        last.say(GET)
        last.listen(1)

        assert last.statuses == [200]
        first.listen(2, seconds=PATIENCE_SECONDS if others == 2 else 0.2)
        assert first.is_closed == (others == 2)
        assert not any(each.is_closed for each in waiting)


def test_if_all_workers_are_busy_the_next_request_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "DELIVERY_TIMEOUT_SECONDS", 2.0)
    asking = Asking(World())
    asking.broker.says = lambda _: None
    with served(asking, ConnectionLimits(connections=2)) as url, ExitStack() as open_:
        working = [open_.enter_context(wire(url)) for _ in range(2)]
        for each in working:
            each.say(posted(receipt()))
        wait_until(lambda: len(asking.broker.values("pos_transactions")) == 2)

        last = open_.enter_context(wire(url))
        last.listen(1)
        for each in working:
            each.listen(1)

        assert (last.statuses, last.code) == ([503], "too_busy")
        assert [each.code for each in working] == ["broker_unavailable"] * 2


def test_a_connection_that_was_answered_may_be_silent_for_a_while_and_then_ends() -> None:
    limits = ConnectionLimits(receive_seconds=0.5, idle_seconds=2)
    with served(Asking(World()), limits) as url, wire(url) as spoken:
        spoken.say(GET)
        spoken.listen(1)
        time.sleep(1)
        spoken.say(GET)
        spoken.listen(2)

        spoken.listen(3)

        assert (spoken.statuses, spoken.is_closed) == ([200, 200], True)


def test_a_client_that_reads_nothing_is_let_go() -> None:
    before = ended("not_read")
    with listening(large, ConnectionLimits(idle_seconds=1)) as url, deaf(url):
        wait_until(lambda: ended("not_read") > before)

    assert ended("not_read") == before + 1


def test_a_client_that_reads_slowly_gets_all_of_it() -> None:
    with listening(large, ConnectionLimits(idle_seconds=3)) as url, wire(url) as spoken:
        spoken.say(GET)
        read, until = bytearray(), time.monotonic() + 6
        while not read.endswith(LARGE[:1000]) or len(read) < len(LARGE):
            read += (part := spoken.connected.recv(100_000))
            if not part:
                break
            time.sleep(0.1 if time.monotonic() < until else 0)

    assert read.endswith(LARGE)


def test_answers_that_wait_for_their_clients_are_bounded_together() -> None:
    before = ended("not_read")
    limits = ConnectionLimits(idle_seconds=60, unsent_bytes=20_000_000)
    with listening(large, limits) as url, deaf(url), deaf(url):
        wait_until(lambda: ended("not_read") > before)

    assert ended("not_read") == before + 1


class Looked:
    """A connection that notes when it is looked at, and owes its client nothing."""

    def __init__(self, noted: list[str]) -> None:
        self._noted = noted

    def check(self, _: float) -> int:
        self._noted.append("looked")
        return 0

    def close(self, why: str) -> None:
        raise AssertionError(why)


def test_requests_have_a_turn_while_many_connections_are_looked_at() -> None:
    noted: list[str] = []
    connections = Connections(ConnectionLimits())
    for _ in range(4 * CHECK_BATCH):
        connections.enter(Looked(noted))

    async def look_beside_requests() -> None:
        looking = asyncio.ensure_future(connections.check(0))
        while not looking.done():
            noted.append("turn")
            await asyncio.sleep(0)

    asyncio.run(look_beside_requests())

    between = [len(each.split()) for each in " ".join(noted).split("turn")]
    assert sum(between) == 4 * CHECK_BATCH
    assert max(between) == CHECK_BATCH


def test_bodies_that_come_slowly_take_no_place_from_others() -> None:
    asking = Asking(World(), limits=Limits(requests_in_flight=1, ingests_in_flight=1))
    with served(asking) as url, ExitStack() as open_:
        for _ in range(5):
            open_.enter_context(wire(url)).say(posted(b"{", length=1000))
        wait_until(lambda: asking.app.state.bodies.held == 5)

        honest = open_.enter_context(wire(url))
        honest.say(posted(receipt()))
        honest.listen(1)
        honest.say(GET)
        honest.listen(2)

        assert honest.statuses == [202, 200]
        assert asking.app.state.in_flight.now == 0


@pytest.mark.parametrize(("most", "status"), [(2, 200), (1, 503)])
def test_the_request_above_the_limit_in_work_is_rejected_at_once(
    monkeypatch: pytest.MonkeyPatch, most: int, status: int
) -> None:
    monkeypatch.setattr(ingest, "DELIVERY_TIMEOUT_SECONDS", 2.0)
    asking = Asking(World(), limits=Limits(requests_in_flight=most))
    asking.broker.says = lambda _: None
    with served(asking) as url, wire(url) as working, wire(url) as other:
        working.say(posted(receipt()))
        wait_until(lambda: bool(asking.broker.values("pos_transactions")))

        other.say(GET)
        other.listen(1)
        working.listen(1)
        other.say(GET)
        other.listen(2)

        assert other.statuses == [status, 200]
        assert working.code == "broker_unavailable"


def test_hostile_clients_of_every_kind_are_ended_and_honest_ones_are_answered_meanwhile() -> None:
    asking = Asking(World(), limits=Limits(receive_seconds=1))
    keys = [asking.keys.make("default", "ingest") for _ in range(2)]
    stop = threading.Event()
    with served(asking, ConnectionLimits(receive_seconds=1)) as url, ThreadPoolExecutor() as beside:
        port = urlsplit(url).port or 0
        attacking = beside.submit(lambda: asyncio.run(Attackers(port, keys, 12, 3).attack(stop)))
        statuses, until = Counter[int](), time.monotonic() + 5
        while time.monotonic() < until:
            with wire(url) as honest:
                honest.say(posted(receipt()) + GET)
                honest.listen(2)
                statuses.update(honest.statuses)
        stop.set()
        harm = attacking.result()

    assert set(statuses) == {200, 202}
    assert statuses[200] == statuses[202] > 0
    assert set(harm.lasted) == {"slowloris", "silent", "slow body", "slow body without a key", "header flood", "bomb"}
    assert {answer_status for answer_status in harm.statuses if answer_status.endswith(("200", "202"))} == set()
