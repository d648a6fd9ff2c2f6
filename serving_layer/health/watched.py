"""What other processes report: their lag, events for alarms, and the statistics of publications."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from serving_layer.admin.ledger import Ledger
from serving_layer.alerts.history import HistoryCoverage
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.health import LateEventsWaiting, ReaderLag

READERS = ("archive", "speed")


@dataclass(frozen=True)
class LagMeasurement:
    """The last measurement of one partition by its reader.

    `oldest_at`: timestamp of the oldest unread record, None if there is none. `moved_at`: when the position last
    changed.
    """

    reader: str
    topic: str
    partition: int
    position: int
    end: int
    records: int
    oldest_at: datetime | None
    moved_at: datetime
    measured_at: datetime

    @property
    def seconds(self) -> float:
        """How long the oldest unread record had waited at the measurement; 0 if there was none."""
        return max((self.measured_at - self.oldest_at).total_seconds(), 0.0) if self.oldest_at else 0.0

    def response(self) -> ReaderLag:
        """The measurement as the API shows it."""
        return ReaderLag(
            reader=self.reader,
            topic=self.topic,
            partition=self.partition,
            position=self.position,
            end=self.end,
            records=self.records,
            seconds=self.seconds,
            measured_at=iso_instant(self.measured_at),
        )


class AlarmEvent(NamedTuple):
    """Something that a process observed. `detail` is one sentence."""

    at: datetime
    place: str
    detail: str


class LateEvents(NamedTuple):
    """Events that the speed layer has left to the next publication.

    Attributes:
        since: Start of the epoch in which the first of them was received.
        left_because: Why they are left to the schedule, a code; None if they are not.
        failed: The last rebuild that they have started since the current publication, if it failed.
    """

    since: datetime
    left_because: str | None = None
    failed: AlarmEvent | None = None

    def response(self) -> LateEventsWaiting:
        """The late events as the API shows them."""
        return LateEventsWaiting(since=iso_instant(self.since), left_because=self.left_because)


class PublicationStats(NamedTuple):
    """What a publication recorded about itself. `stats`: what its rebuild counted, by name."""

    published_at: datetime | None
    stats: Mapping[str, Any]

    @property
    def read_at(self) -> datetime | None:
        """When its rebuild began to read the master dataset; it may not cover what was observed later."""
        text = self.stats.get("read_at")
        return datetime.fromisoformat(text) if text else self.published_at


class EndpointHealth(NamedTuple):
    """The state of a webhook. `seen_at`: when the dispatcher last reported it."""

    created_at: datetime
    suspended_at: datetime | None
    failing_since: datetime | None
    seen_at: datetime | None
    refusing_since: datetime | None = None


class HealthReader(Protocol):
    """Reads the reports. Every method raises CassandraUnavailableError."""

    async def lag(self, reader: str) -> Sequence[LagMeasurement]:
        """The last measurement of each partition; none if that reader has never run."""

    async def noticed(self, name: str, after: datetime) -> Sequence[AlarmEvent]:
        """Events recorded under the name of an alarm, oldest first; only the first ones of very many."""

    async def endpoints(self) -> Sequence[EndpointHealth]:
        """All webhooks that are not removed."""

    async def alerts(self) -> HistoryCoverage:
        """Up to when events are evaluated and alerts are listed."""

    async def alerts_looked_at(self) -> int:
        """The publication that alerts were compared with last; 0 for none."""

    async def publication(self, number: int) -> PublicationStats:
        """The record of that publication."""

    async def ledgers(self, number: int) -> Sequence[Ledger]:
        """The ledgers of that publication and of a few before it, newest first, as far as they are written."""
