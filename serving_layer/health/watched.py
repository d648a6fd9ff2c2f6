"""What the other processes say of themselves: their lag, what they noticed, and what a publication found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from serving_layer.admin.ledger import Ledger
from serving_layer.alerts.history import HistoryCoverage
from serving_layer.query.timeline import iso_instant
from serving_layer.responses.health import ReaderLag

READERS = ("archive", "speed")


@dataclass(frozen=True)
class LagMeasurement:
    """The last measurement of one partition by its reader. `oldest_at`: stamp of the oldest record left to read.

    `moved_at`: since when the position is where it is. `measured_at`: the time of the measurement.
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
        """For how long the oldest record had been waiting when it was measured; 0 if none was."""
        return max((self.measured_at - self.oldest_at).total_seconds(), 0.0) if self.oldest_at else 0.0

    def response(self) -> ReaderLag:
        """As the API shows it."""
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
    """Something noticed in passing. `detail` is one sentence."""

    at: datetime
    place: str
    detail: str


class PublicationStats(NamedTuple):
    """What a publication says of itself. `stats`: what its rebuild counted, by name."""

    published_at: datetime | None
    stats: Mapping[str, Any]

    @property
    def read_at(self) -> datetime | None:
        """Before its rebuild read the master dataset: what was noticed later may not be settled by it."""
        told = self.stats.get("read_at")
        return datetime.fromisoformat(told) if told else self.published_at


class EndpointHealth(NamedTuple):
    """An endpoint of webhooks. `seen_at`: when whoever calls it has said last how it is doing."""

    created_at: datetime
    suspended_at: datetime | None
    failing_since: datetime | None
    seen_at: datetime | None
    refusing_since: datetime | None = None


class HealthReader(Protocol):
    """Reads all of it. Every method raises CassandraUnavailableError when the store does not answer in time."""

    async def lag(self, reader: str) -> Sequence[LagMeasurement]:
        """The last measurement of each partition; none if that reader has never run."""

    async def noticed(self, name: str, after: datetime) -> Sequence[AlarmEvent]:
        """What was noticed under the name of an alarm, oldest first; of very many the first ones."""

    async def hooks(self) -> Sequence[EndpointHealth]:
        """Every endpoint of webhooks that is not removed."""

    async def alerts(self) -> HistoryCoverage:
        """How far alerts are judged and listed."""

    async def alerts_looked_at(self) -> int:
        """The publication whose numbers alerts were compared with last; 0: none."""

    async def publication(self, number: int) -> PublicationStats:
        """What is known of that publication."""

    async def ledgers(self, number: int) -> Sequence[Ledger]:
        """Of that publication and of the few before it, newest first; those that are written."""
