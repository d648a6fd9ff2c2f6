"""From the broker's acknowledgement to an answer that shows the receipt, while 1,000 receipts per second arrive."""

import itertools
import random
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx

from benchmarks import bare, local, traffic
from benchmarks.local import steps
from benchmarks.report import Measured, percentile
from benchmarks.traffic import ReceiptStream, in_background
from master_dataset.kafka.topics import Topics
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings

AIM_SECONDS = 1.0
ASK_EVERY = 0.05
PAUSE = 0.37  # seconds between timed receipts; not a multiple of any period
GIVE_UP = 300.0
WARM_UP = 3  # receipts that are not timed


def delays(settings: "Settings", probes: int) -> list[Measured]:
    """The bare loop first, then ours, both under the same stream."""
    with in_background(ReceiptStream(settings, bare.TOPIC)):
        simple = _bare(settings, probes)
    stream = ReceiptStream(settings, POS_TRANSACTIONS.topic)
    with in_background(stream):
        ours = seconds_until_seen(settings, probes)
    details = {
        "aim_seconds": AIM_SECONDS,
        "probes": probes,
        "sent_per_second": round(stream.rate),
        "micro_batch_ms": steps(settings.home / "logs" / "speed.log", probes),
    }
    both = {"p50": 0.5, "p99": 0.99}
    pairs = {name: (percentile(ours, share), percentile(simple, share)) for name, share in both.items()}
    return [
        Measured(f"delay {name}", *pair, "s", "bare loop", better="low", details=details if name == "p50" else {})
        for name, pair in pairs.items()
    ]


def _bare(settings: "Settings", probes: int) -> list[float]:
    session = local.cassandra(settings)
    partitions = Topics(settings.kafka.connection).partitions(bare.TOPIC)
    with in_background(bare.ConsumeAndInsert(settings.kafka.connection, session, partitions)):
        select = session.prepare("SELECT value FROM bench_seen WHERE id = ?")
        sending = Sender(settings, bare.TOPIC)
        found = []
        for number in range(probes):
            name = f"probe-{number}"
            sent = sending.send(name)
            while session.execute(select, (name,)).one() is None:
                _not_for_ever(sent)
                time.sleep(0.001)
            found.append(time.monotonic() - sent)
            time.sleep(PAUSE)
    return found


def seconds_until_seen(settings: "Settings", probes: int) -> list[float]:
    """Of each receipt from its acknowledgement until an answer shows it, when whatever runs beside is at its pace."""
    _timed(settings, WARM_UP)
    return _timed(settings, probes)


def _timed(settings: "Settings", probes: int) -> list[float]:
    sending = Sender(settings, POS_TRANSACTIONS.topic)
    found = []
    with _asking(settings) as client:
        seen = _seen(client)
        for _ in range(probes):
            before, sent = seen, sending.send(traffic.PROBE)
            while (seen := _seen(client)) <= before:
                _not_for_ever(sent)
                time.sleep(ASK_EVERY)
            found.append(time.monotonic() - sent)
            time.sleep(PAUSE)
    return found


def _asking(settings: "Settings") -> httpx.Client:
    key = (settings.home / "operator.key").read_text().strip()  # the store is not registered
    headers, trust = {"Authorization": f"Bearer {key}"}, settings.api_trust
    return httpx.Client(base_url=settings.api_url, headers=headers, trust_env=False, timeout=30, verify=trust)


def _seen(client: httpx.Client) -> int:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    span = {"from": (now - timedelta(hours=2)).isoformat(), "to": (now + timedelta(hours=1)).isoformat()}
    answer = client.get("/v1/views/sales/cells", params={"store": traffic.PROBE, **span})
    if answer.is_server_error:  # no generation is published yet
        return 0
    answer.raise_for_status()
    return sum(cell["merged"]["receipts"] for cell in answer.json()["cells"])


class Sender:
    """Sends one receipt at a time and says when the broker had it."""

    _numbers = itertools.count(time.time_ns() // 1000)

    def __init__(self, settings: "Settings", topic: str) -> None:
        """To this topic."""
        self._producer, self._topic = bare.producer(settings.kafka.connection, linger_ms=0), topic
        self._rng = random.Random(9)  # noqa: S311 - no secret

    def send(self, key: str) -> float:
        """By the monotonic clock, in seconds."""
        acknowledged: list[float] = []
        value = traffic.receipt_line(self._rng, next(self._numbers), datetime.now(UTC), traffic.PROBE)
        self._producer.produce(
            self._topic,
            value,
            key=key.encode(),
            on_delivery=lambda error, _message: None if error else acknowledged.append(time.monotonic()),
        )
        self._producer.flush(30)
        return acknowledged[0]


def _not_for_ever(sent: float) -> None:
    if time.monotonic() - sent > GIVE_UP:
        raise TimeoutError(f"a receipt was not seen for {GIVE_UP:g} seconds")
