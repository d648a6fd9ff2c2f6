"""A thousand followers of a live answer: the memory of each in the API process, and the delay of each update.

The memory is compared with its limit, the delay with that of a single follower.
"""

import resource
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchmarks.delay import Sender
from benchmarks.report import Measured, percentile
from benchmarks.traffic import PROBE
from deploy.local.records import Records
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings

LISTENERS = 1_000
TOGETHER = 100
"""Connect at the same time. Of more than 256, some would get 503."""
PROBES, PAUSE, QUIET = 20, 0.9, 2.0
KIB, MOST_KIB = 1024, 64.0
GIVE_UP_SECONDS = 60.0
ANSWER = b"\nevent: answer\n"


def listened(settings: "Settings") -> Iterator[Measured]:
    """On a whole stack in which nothing else is sent."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    before = _held(settings)
    with _connected(settings, b"", LISTENERS):
        idle = _held(settings) - before
    before = _held(settings)
    with _connected(settings, _follow(settings), LISTENERS) as followers:
        held = _held(settings) - before
        many = _delays(settings, followers)
    with _connected(settings, _follow(settings), 1) as follower:
        one = _delays(settings, follower)
    details = {"kib_of_an_idle_connection": round(idle / LISTENERS / KIB, 1), "listeners": LISTENERS}
    each = held / LISTENERS / KIB, MOST_KIB
    yield Measured("listeners, memory of one", *each, "KiB", "limit", better="low", limit=1.0, details=details)
    slowest = {"slowest": round(max(many), 3), "slowest_beside": round(max(one), 3), "listeners": LISTENERS}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        both = percentile(many, share), percentile(one, share)
        yield Measured(f"listeners, delay {name}", *both, "s", "one listener", better="low", details=slowest)


def _follow(settings: "Settings") -> bytes:
    today = datetime.now(UTC).date()
    query = {"store": PROBE, "from": today, "to": today + timedelta(days=1), "timezone": "UTC"}
    key = (settings.home / "operator.key").read_text().strip()  # the store is not registered
    head = (
        f"GET /v1/live/net_sales?{urlencode(query)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
    )
    return head.encode()


def _held(settings: "Settings") -> int:
    """Bytes that the answering process holds, when it has come to rest."""
    time.sleep(QUIET)
    (line,) = (
        line
        for line in Path(f"/proc/{Records(settings.home).pid('api')}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    )
    return int(line.split()[1]) * KIB


@contextmanager
def _connected(settings: "Settings", request: bytes, number: int) -> Iterator[list[socket.socket]]:
    open_: list[socket.socket] = []
    try:
        while len(open_) < number:
            together = [
                socket.create_connection(("127.0.0.1", settings.api.port)) for _ in range(min(number, TOGETHER))
            ]
            open_ += together
            for each in together:
                each.sendall(request)
            if request:
                _arrivals(together)
        yield open_
    finally:
        for each in open_:
            each.close()


def _delays(settings: "Settings", followers: list[socket.socket]) -> list[float]:
    """Of each probe and follower: seconds from the broker's acknowledgement to the answer."""
    sender, found = Sender(settings, POS_TRANSACTIONS.topic), []
    for _ in range(PROBES):
        sent = sender.send(PROBE)
        found += [at - sent for at in _arrivals(followers)]
        time.sleep(PAUSE)
    return found


def _arrivals(followers: list[socket.socket]) -> list[float]:
    """When each follower got an answer. TimeoutError."""
    waiting = select.epoll()
    arrived: list[float] = []
    by_number = {each.fileno(): each for each in followers}
    for number in by_number:
        waiting.register(number, select.EPOLLIN)
    until = time.monotonic() + GIVE_UP_SECONDS
    while len(arrived) < len(followers):
        if time.monotonic() > until:
            raise TimeoutError(f"{len(followers) - len(arrived)} followers got no answer")
        for number, _ in waiting.poll(1):
            if ANSWER in b"\n" + by_number[number].recv(1 << 20).replace(b"\r", b""):
                arrived.append(time.monotonic())
                waiting.unregister(number)
    waiting.close()
    return arrived
