"""What an event costs the speed layer with few and many stores, and with few and many partitions of its work.

All run one after another with the same number of receipts, each with a home of its own. The cost is the processor time
of the speed layer's process with its JVM and workers; that of Cassandra is among the details.
"""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import local, traffic
from benchmarks.capacity import counted_pace
from benchmarks.report import Measured
from master_dataset.kafka.ingest import ingest
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

FULL = 60_000
GROWTH = 1.2
"""How many times more an event may cost than in the smallest run."""


class Run(NamedTuple):
    """`partitions`: of the speed layer and of the topics."""

    stores: int
    partitions: int

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.stores:,} stores, {self.partitions} partition{'' if self.partitions == 1 else 's'}"


SMALLEST = Run(10, 1)
OTHERS = (Run(1_000, 1), Run(5_000, 1), Run(1_000, 2), Run(1_000, 8))


def scale(size: int) -> Iterator[Measured]:
    """`size` receipts and a tenth of them again in each run."""
    least, _ = _core_ms(SMALLEST, size)
    for run in OTHERS:
        found, details = _core_ms(run, size)
        yield Measured(
            f"scale, {run.name}", found, least, "core-ms", SMALLEST.name, better="low", limit=GROWTH, details=details
        )


def _core_ms(run: Run, size: int) -> tuple[float, dict[str, object]]:
    partitions = str(run.partitions)
    variables = {"GALATEA_SPEED_PARTITIONS": partitions, "GALATEA_KAFKA_PARTITIONS": str(max(2, run.partitions))}
    with local.own_home(**variables) as settings:
        with local.running(settings, "kafka"):
            receipts = traffic.receipt_backlog(size, stores=run.stores)
            ingest(POS_TRANSACTIONS, receipts, settings.kafka.connection, lambda _result: None)
        with local.running(settings, "kafka", "cassandra", "speed"):
            pace, details = counted_pace(settings)
    return 1000 / pace.per_core_second, details
