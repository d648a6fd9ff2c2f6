"""Generated events, and work that runs in the background of a measurement."""

import itertools
import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Event
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks import bare
from master_dataset.kafka.ingest import paced
from master_dataset.parsing.parse import key_of
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings


@contextmanager
def in_background(work: Callable[[Event], None]) -> Iterator[None]:
    """Do this work in a thread while the block runs. The event is set at its end; its errors are raised there."""
    leave = Event()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work, leave)
        try:
            yield
        finally:
            leave.set()
        working.result()


STORES, TILLS, SKUS = 100, 8, 20_000
PREPARED = 2_000
REPEATED = 10
"""One receipt in so many of a backlog is delivered twice."""
PROBE = "999"
"""The store of the receipts that are timed. No other receipts have it."""


def receipt_history(count: int, days: int, seed: int = 7) -> list[bytes]:
    """Receipts of the last days, in order."""
    start = datetime.now(UTC) - timedelta(days=days + 1)
    step = timedelta(days=days) / count
    rng = random.Random(seed)  # noqa: S311 - no secret
    return [receipt_line(rng, number, start + step * number) for number in range(count)]


def receipt_backlog(count: int, seed: int = 10, *, stores: int = STORES) -> Iterator[bytes]:
    """`count` receipts of the last hour, in order. One in ten is sent again when a tenth of all have followed it."""
    start, step = datetime.now(UTC) - timedelta(hours=1), timedelta(hours=1) / count
    rng = random.Random(seed)  # noqa: S311 - no secret
    waiting: deque[bytes] = deque()
    for number in range(count):
        store = str(rng.randint(1, stores))
        waiting.append(receipt_line(rng, number, start + step * number, store))
        yield waiting[-1]
        if len(waiting) > count // REPEATED:
            again = waiting.popleft()
            if number % REPEATED == 0:
                yield again


def live_receipts(first: int, seed: int = 8) -> Iterator[bytes]:
    """Receipts of this very moment, without end. Their lines are made beforehand, which leaves more of the machine."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    prepared = [_lines(rng) for _ in range(PREPARED)]
    for number in itertools.count(first + 1):
        yield receipt_line(rng, number, datetime.now(UTC), lines=prepared[rng.randrange(PREPARED)])


def receipt_line(
    rng: random.Random,
    number: int,
    happened_at: datetime,
    store: str | None = None,
    lines: list[dict[str, object]] | None = None,
) -> bytes:
    """One receipt of 1 to 18 lines; `lines`: these."""
    return orjson.dumps(
        {
            "happened_at": happened_at.isoformat(timespec="milliseconds"),
            "operation_id": int(store or rng.randint(1, STORES)),
            "transaction_id": number,
            "vendor_fiscal_module": rng.randint(1, TILLS),
            "transactions": lines or _lines(rng),
        }
    )


def _lines(rng: random.Random) -> list[dict[str, object]]:
    return [_line(rng) for _ in range(rng.randint(1, 18))]


def _line(rng: random.Random) -> dict[str, object]:
    sku = 8_580_000 + int(SKUS * rng.random() ** 3)
    price, amount = rng.randint(50, 2000), rng.randint(1, 3)
    total = round(price * amount / 100, 2)
    title = f"Item number {sku} of the shop"
    return {"title": title, "price": price / 100, "amount": amount, "total": total, "sku": str(sku)}


SENSOR_STORES = 20
HOURS = 6


def source_records(topic: str, number: int) -> Iterator[bytes]:
    """The source's own example at other times, stores and places; the same for the same number."""
    source = registered_sources()[topic]
    chance = Random(topic)  # noqa: S311 - no secret
    began = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS)
    for place in range(number):
        yield json.dumps(_moved(source, place, began, chance)).encode()


def _moved(source: Source[Any], place: int, began: datetime, chance: Random) -> dict[str, object]:
    """Its instants are moved by as much, so that what lasted lasts; in steps of a window, so that none is crossed."""
    said = dict(source.example)
    times = {name: _instant(value) for name, value in said.items() if _is_instant(value)}
    shift = began - times[source.happened_at] + timedelta(minutes=15 * chance.randrange(4 * HOURS))
    said |= {name: (at + shift).isoformat() for name, at in times.items()}
    said[source.store] = str(place % SENSOR_STORES)
    for name in ("sensor_id", "track", "staff", "provider"):
        if name in said:
            said[name] = f"{name}-{place}"  # changes the identity of the event
    if "device" in said:
        said["device"] = f"{chance.randrange(SENSOR_STORES * 500):032x}"
    if "transaction_id" in said:
        said["transaction_id"] = place
    return said


def _is_instant(value: object) -> bool:
    return isinstance(value, str) and len(value) >= len("2026-03-07T10:00:00Z") and value[4:5] == "-" == value[7:8]


def _instant(value: object) -> datetime:
    return datetime.fromisoformat(str(value)).astimezone(UTC)


PER_SECOND = 1_000
LINGER_MS = 50
"""As a gateway of many tills sends: otherwise nearly every receipt is a request, and the broker syncs it alone."""


class ReceiptStream:
    """Sends until the event is set, so it goes `beside`. Afterwards `rate` says how many a second it really sent."""

    def __init__(self, settings: "Settings", topic: str, per_second: int = PER_SECOND) -> None:
        """On this topic."""
        self._kafka, self._topic, self._per_second = settings.kafka.connection, topic, per_second
        self.rate = 0.0

    def __call__(self, leave: "Event") -> None:
        """Send, and wait in the end until all is acknowledged."""
        producer, key = bare.producer(self._kafka, LINGER_MS), key_of(POS_TRANSACTIONS)
        began, sent = time.monotonic(), 0
        for value in paced(
            live_receipts(time.time_ns() // 1_000_000), self._per_second
        ):  # numbers of 13 digits, as tills use
            if leave.is_set():
                break
            producer.produce(self._topic, value, key=key(value))
            producer.poll(0)
            sent += 1
        self.rate = sent / (time.monotonic() - began)
        producer.flush(30)
