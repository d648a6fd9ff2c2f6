"""Events per second over HTTP, each acknowledged by the broker, compared with a loop that produces the same records."""

import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benchmarks import bare, ingest, local
from benchmarks.report import Measured
from master_dataset.parsing.parse import key_of
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deploy.settings import Settings

FULL = 150_000
ROUNDS, SENDERS = 4, 2
PROCESSES = ("api", "api-2")
EVENTS, BYTES = 1_000, 900_000
"""Of one request."""
PATH = f"/v1/events/{POS_TRANSACTIONS.topic}"
ACCEPTED = 202


def posted(size: int) -> "Iterator[Measured]":
    """`size` receipts to one api process, then to two. Nothing else runs that would read them."""
    lines = ingest.history(size)
    with local.own_home(GALATEA_API_PROCESSES=str(len(PROCESSES))) as settings:
        for number, name in enumerate(("posted", "posted, two processes"), 1):
            with local.running(settings, "kafka", "cassandra", *PROCESSES[:number]):
                yield _measured(settings, lines, name)


def _measured(settings: "Settings", lines: "Sequence[bytes]", name: str) -> Measured:
    """In turns, the best of each counts: two connections may meet the same process."""
    local.new_topic(settings, bare.TOPIC)
    key = key_of(POS_TRANSACTIONS)
    share = len(lines) // ROUNDS
    ours, beside = [], []
    for number in range(ROUNDS):
        part = lines[number * share : (number + 1) * share]
        ours.append(_posted(settings, part))
        beside.append(bare.produce(settings.kafka.connection, [(key(each) or b"", each) for each in part]))
    details = {"events": share * ROUNDS, "senders": SENDERS, "most_events_of_a_request": EVENTS}
    return Measured(name, max(ours), max(beside), "events/s", "bare produce loop", details=details)


def _posted(settings: "Settings", lines: "Sequence[bytes]") -> float:
    """Accepted events a second, of as many connections as there are senders."""
    bodies = _bodies(lines)
    began = time.monotonic()
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(lambda mine: _send(settings, mine), (bodies[at::SENDERS] for at in range(SENDERS))))
    return len(lines) / (time.monotonic() - began)


def _bodies(lines: "Sequence[bytes]") -> list[bytes]:
    bodies: list[list[bytes]] = [[]]
    size = 0
    for line in lines:
        if len(bodies[-1]) == EVENTS or size + len(line) > BYTES:
            bodies.append([])
            size = 0
        bodies[-1].append(line)
        size += len(line) + 1
    return [b"\n".join(each) for each in bodies]


def _send(settings: "Settings", bodies: "Sequence[bytes]") -> None:
    """RuntimeError unless every event is accepted."""
    key = (settings.home / "operator.key").read_text().strip()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    connection = http.client.HTTPConnection("127.0.0.1", settings.api.port, timeout=60)
    for body in bodies:
        connection.request("POST", PATH, body, headers)
        answer = connection.getresponse()
        received = answer.read()
        if answer.status != ACCEPTED:
            raise RuntimeError(received.decode())
    connection.close()
