"""Measures every few seconds how far a streaming process is behind, from the positions that its queries recorded.

The results go to Prometheus, to Cassandra (for the serving layer) and to a consumer group (for ordinary Kafka tools).
The monitor has a thread of its own, so that a stream that hangs is measured as well, and its failures stop no stream.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from cassandra import DriverException
from prometheus_client import Counter, Gauge

from deploy.process import installed_release
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.lag import ConsumerGroup, Lag, LagProbe, LagTable, Offsets

if TYPE_CHECKING:
    from cassandra.cluster import Session

ROUND_SECONDS = 2.0

_LABELS = ("reader", "topic", "partition")
POSITION = Gauge("galatea_position", "Offset up to which the query has recorded that it has read.", _LABELS)
RECORDS = Gauge("galatea_lag_records", "Records not read yet.", _LABELS)
SECONDS = Gauge("galatea_lag_seconds", "Age of the oldest record not read yet.", _LABELS)
NOT_MEASURED = Counter("galatea_lag_failures", "Rounds in which the lag could not be measured or stored.", ("reader",))
NOT_COMMITTED = Counter(
    "galatea_commit_failures", "Rounds in which the consumer group could not be committed.", ("reader",)
)

log = structlog.get_logger()


class LagMonitor:
    """One per streaming process."""

    def __init__(
        self, reader: str, topics: Sequence[str], positions: Callable[[], Offsets], kafka: KafkaConnection
    ) -> None:
        """`reader`: archive or speed. `positions` reads the positions that its queries recorded."""
        self._reader, self._topics, self._positions = reader, topics, positions
        self._probe = LagProbe(kafka)
        self._group = ConsumerGroup(kafka, f"galatea.{reader}")
        NOT_MEASURED.labels(reader)  # a counter that exists from the start shows its first increase
        NOT_COMMITTED.labels(reader)

    def start(self, session: "Session", also: Callable[[], None] = lambda: None) -> None:
        """Measure in a thread until the process ends. Every round also calls `also`."""
        table = LagTable(session, self._reader, installed_release())
        threading.Thread(target=self._watch, args=(table, also), name="lag-monitor", daemon=True).start()

    def measure(self, table: LagTable) -> None:
        """Run one round. A failure to commit the group is only counted; a failure to measure is raised."""
        positions = self._positions()
        measured = self._probe.measure(self._topics, positions)
        now = datetime.now(UTC)
        for each in measured:
            self._show(each, now)
        try:
            self._group.commit(positions)
        except DependencyUnavailableError as error:
            NOT_COMMITTED.labels(self._reader).inc()
            log.warning("lag.not_committed", group=self._group.name, error=str(error))
        table.write(measured, now)

    def _watch(self, table: LagTable, also: Callable[[], None]) -> None:
        pause = threading.Event()
        while True:
            try:
                self.measure(table)
                also()
            except (DependencyUnavailableError, DriverException, *CASSANDRA_UNAVAILABLE) as error:
                NOT_MEASURED.labels(self._reader).inc()
                log.warning("lag.not_measured", reader=self._reader, error=str(error))
            pause.wait(ROUND_SECONDS)

    def _show(self, lag: Lag, now: datetime) -> None:
        labels = (self._reader, lag.topic, lag.partition)
        POSITION.labels(*labels).set(lag.position)
        RECORDS.labels(*labels).set(lag.records)
        SECONDS.labels(*labels).set(lag.seconds(now))
