"""What logins and encryption cost: capacity and delay of a secured stack, beside one that asks for neither.

Both are measured twice, in turns, each with a home of its own; the median of each is compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import local, traffic
from benchmarks.capacity import counted_pace
from benchmarks.delay import seconds_until_seen
from benchmarks.report import Measured, percentile
from benchmarks.traffic import ReceiptStream, in_background
from master_dataset.kafka.ingest import ingest
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 100_000
WORST = 0.15
"""How much of the capacity logins and encryption may cost, and how much they may add to the delay."""
PROBES = 30
PER_SECOND = 100
"""Receipts that arrive meanwhile: few enough for a busy machine."""
ORDER = (False, True, True, False)
"""Whether the stack is secured, for each round. What changes steadily with time is the same for both."""


@dataclass(frozen=True)
class _Found:
    """Of each round: receipts/s and receipts/core-s of the speed layer with a backlog; seconds until each is seen."""

    second: list[float] = field(default_factory=list)
    core: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)


def secured(size: int) -> Iterator[Measured]:
    """`size` receipts and a tenth of them again for the capacity."""
    found = {False: _Found(), True: _Found()}
    for is_secured in ORDER:
        with local.own_home(GALATEA_SECURE=str(is_secured).lower()) as settings:
            _measure(settings, size, found[is_secured])
    plain, safe = found[False], found[True]
    details = {"order": ORDER, "secured": safe.second, "plain": plain.second, "delays": len(safe.delays)}
    beside, least = "the same stack without logins and encryption", 1 - WORST
    pairs = {"secured capacity": (safe.second, plain.second), "secured capacity of a core": (safe.core, plain.core)}
    for name, (ours, theirs) in pairs.items():
        unit = "events/core-s" if "core" in name else "events/s"
        yield Measured(name, median(ours), median(theirs), unit, beside, limit=least, details=details)
        details = {}
    yield Measured(
        "secured delay p50", median(safe.delays), median(plain.delays), "s", beside, better="low", limit=1 + WORST
    )
    p99 = percentile(safe.delays, 0.99), percentile(plain.delays, 0.99)
    yield Measured("secured delay p99", *p99, "s", beside, better="low")


def _measure(settings: "Settings", size: int, found: _Found) -> None:
    with local.running(settings, "kafka"):
        ingest(POS_TRANSACTIONS, traffic.receipt_backlog(size), settings.kafka.connection, lambda _result: None)
    with local.running(settings, "kafka", "cassandra", "speed", "api"):
        pace, _ = counted_pace(settings)
        found.second.append(pace.per_second)
        found.core.append(pace.per_core_second)
        with in_background(ReceiptStream(settings, POS_TRANSACTIONS.topic, PER_SECOND)):
            found.delays.extend(seconds_until_seen(settings, PROBES))
