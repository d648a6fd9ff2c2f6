"""Looks every few seconds how far a streaming process is behind, from the positions that its queries recorded.

What it sees goes to Prometheus, to Cassandra (for serving) and to a consumer group (for ordinary Kafka tools). It runs
in a thread of its own: a stream that stands still is measured as well, and a failure here stops no stream.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from cassandra import DriverException
from prometheus_client import Counter, Gauge

from deploy.cassandra import FAILURES
from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.lag import ConsumerGroup, Lag, LagProbe, LagTable, Offsets

if TYPE_CHECKING:
    from cassandra.cluster import Session

ROUND_SECONDS = 2.0

_PLACE = ("reader", "topic", "partition")
POSITION = Gauge("galatea_position", "Offset before which everything is read, as the query recorded it.", _PLACE)
RECORDS = Gauge("galatea_lag_records", "Records left to read.", _PLACE)
SECONDS = Gauge("galatea_lag_seconds", "For how long the oldest record left to read has been waiting.", _PLACE)
NOT_MEASURED = Counter("galatea_lag_failures", "Rounds in which the lag could not be measured or kept.", ("reader",))
NOT_COMMITTED = Counter("galatea_commit_failures", "Rounds in which the consumer group was not committed.", ("reader",))

log = structlog.get_logger()


class Lookout:
    """One per streaming process."""

    def __init__(self, reader: str, topics: Sequence[str], positions: Callable[[], Offsets], bootstrap: str) -> None:
        """`reader`: archive or speed. `positions` reads what its queries recorded."""
        self._reader, self._topics, self._positions = reader, topics, positions
        self._probe = LagProbe(bootstrap)
        self._group = ConsumerGroup(bootstrap, f"galatea.{reader}")
        NOT_MEASURED.labels(reader)  # a counter that is there from the start shows its first increase
        NOT_COMMITTED.labels(reader)

    def start(self, session: "Session", also: Callable[[], None] = lambda: None) -> None:
        """Look until the process ends. `also` is done in every round."""
        table = LagTable(session, self._reader)
        threading.Thread(target=self._watch, args=(table, also), name="lookout", daemon=True).start()

    def look(self, table: LagTable) -> None:
        """One round. A group that cannot be committed is only counted; what cannot be measured is raised."""
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
                self.look(table)
                also()
            except (DependencyUnavailableError, DriverException, *FAILURES) as error:
                NOT_MEASURED.labels(self._reader).inc()
                log.warning("lag.not_measured", reader=self._reader, error=str(error))
            pause.wait(ROUND_SECONDS)

    def _show(self, lag: Lag, now: datetime) -> None:
        place = (self._reader, lag.topic, lag.partition)
        POSITION.labels(*place).set(lag.position)
        RECORDS.labels(*place).set(lag.records)
        SECONDS.labels(*place).set(lag.seconds(now))
