"""What an event costs the speed layer with few and many stores, and with few and many partitions of its work.

All run one after another with the same number of receipts, each with a home of its own: first with Spark in the process
of the speed layer, then on a standalone cluster of two workers. The cost is the processor time of the speed layer's
process with its JVM and workers, and of the cluster; that of Cassandra is among the details.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import local, traffic
from benchmarks.capacity import counted_pace
from benchmarks.report import Measured
from deploy.settings import Settings
from master_dataset.kafka.ingest import ingest
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.system.deployments.standalone import standalone

FULL = 60_000
GROWTH = 1.2
"""How many times more an event may cost than in the smallest run."""


class Run(NamedTuple):
    """`partitions`: of the speed layer and of the topics."""

    stores: int
    partitions: int
    on_cluster: bool = False

    @property
    def name(self) -> str:
        """As in the table."""
        partitions = f"{self.partitions} partition{'' if self.partitions == 1 else 's'}"
        return f"{self.stores:,} stores, {partitions}{' on a cluster' if self.on_cluster else ''}"


SERIES = (
    (Run(10, 1), (Run(1_000, 1), Run(5_000, 1), Run(1_000, 2), Run(1_000, 8))),
    (Run(10, 1, on_cluster=True), (Run(1_000, 2, on_cluster=True), Run(1_000, 8, on_cluster=True))),
)
"""The smallest run, and those that are compared with it."""
CLUSTER_CORES = 2


def scale(size: int) -> Iterator[Measured]:
    """`size` receipts and a tenth of them again in each run."""
    for smallest, others in SERIES:
        least, _ = _core_ms(smallest, size)
        for run in others:
            found, details = _core_ms(run, size)
            yield Measured(
                f"scale, {run.name}",
                found,
                least,
                "core-ms",
                smallest.name,
                better="low",
                limit=GROWTH,
                details=details,
            )


def _core_ms(run: Run, size: int) -> tuple[float, dict[str, object]]:
    partitions = str(run.partitions)
    variables = {"GALATEA_SPEED_PARTITIONS": partitions, "GALATEA_KAFKA_PARTITIONS": str(max(2, run.partitions))}
    with ExitStack() as stack:
        workers: list[int] = []
        if run.on_cluster:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="galatea-bench-cluster-")))
            cluster = stack.enter_context(standalone(folder / "cluster", Settings()))
            workers = cluster.pids
            variables |= {
                "GALATEA_SPARK_MASTER": cluster.master,
                "GALATEA_SPARK_CORES": str(CLUSTER_CORES),
                "GALATEA_CHECKPOINT_URI": str(folder / "checkpoints"),
                "GALATEA_MASTER_URI": (folder / "master").as_uri(),
            }
        settings = stack.enter_context(local.own_home(**variables))
        with local.running(settings, "kafka"):
            receipts = traffic.receipt_backlog(size, stores=run.stores)
            ingest(POS_TRANSACTIONS, receipts, settings.kafka.connection, lambda _result: None)
        with local.running(settings, "kafka", "cassandra", "speed"):
            pace, details = counted_pace(settings, workers)
    return 1000 / pace.per_core_second, details
