"""Freshness: how old the data is, how far each reader is behind, and which alarms are active."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from msgspec import structs

from serving_layer.admin.ledger import Ledger
from serving_layer.health.alarms import LEFT_OUT_TIME, UNEXPLAINED_TIME, Alarm, HealthState, alarms
from serving_layer.health.watched import READERS, AlarmEvent, HealthReader, LagMeasurement, LateEvents
from serving_layer.keys.key import Caller
from serving_layer.responses import health as responses
from serving_layer.responses.encoding import iso_instant
from serving_layer.service import QueryService
from serving_layer.store.readers import Position
from serving_layer.store.snapshot import ReadSnapshot
from views.control.publication import Pointer
from views.core.cut import UNIX_EPOCH

MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class FreshnessReport:
    """Freshness at one moment. `archived`: positions of the archive. `ledger`: the newest one that is written.

    `alerts_as_of`: all events received before were evaluated and their alerts are listed; None if there never were any.
    `late`: events that wait for the next publication; None if none do.
    """

    at: datetime
    snapshot: ReadSnapshot
    published_at: datetime | None
    archived: Sequence[Position]
    lag: Sequence[LagMeasurement]
    alarms: Sequence[Alarm]
    ledger: Ledger | None
    alerts_as_of: datetime | None = None
    late: LateEvents | None = None
    is_for_operators: bool = True

    def for_readers(self, snapshot: ReadSnapshot) -> Self:
        """The same without what concerns all tenants: positions, what is left to read, late events and alarms.

        `snapshot`: the snapshot as the reader may see it.
        """
        return replace(
            self, snapshot=snapshot, archived=(), lag=(), alarms=(), ledger=None, late=None, is_for_operators=False
        )

    @property
    def archive_as_of(self) -> datetime | None:
        """When the newest record in the archive was received; None for an empty archive."""
        return max((at.received_at for at in self.archived if at.received_at), default=None)

    def response(self) -> responses.Freshness:
        """The report as the API shows it."""
        for_all = responses.Freshness(
            publication=self.snapshot.pointer.publication,
            cut=iso_instant(self.snapshot.pointer.cut),
            published_at=iso_instant(self.published_at),
            generation=self.snapshot.pointer.generation,
            layers=self.snapshot.layers,
            speed_as_of=iso_instant(self.snapshot.speed_as_of),
            alerts_as_of=iso_instant(self.alerts_as_of),
        )
        if not self.is_for_operators:
            return for_all
        speed_as_of, archive_as_of = self.snapshot.speed_as_of, self.archive_as_of
        lag = speed_as_of - archive_as_of if speed_as_of and archive_as_of else None
        speed = [each.seconds for each in self.lag if each.reader == "speed"]
        return structs.replace(
            for_all,
            speed_lag_ms=int(max(speed) * 1000) if speed else None,
            archive_as_of=iso_instant(archive_as_of),
            archive_lag_ms=None if lag is None else max(0, int(lag.total_seconds() * 1000)),
            late_events=self.late.response() if self.late else None,
            speed=[_position(each) for each in self.snapshot.positions],
            archive=[_position(each) for each in self.archived],
            lag=[each.response() for each in self.lag],
            alarms=[
                responses.ActiveAlarm(each.name, iso_instant(each.since), each.meaning, each.do) for each in self.alarms
            ],
        )


class FreshnessService:
    """Reads freshness anew for each call."""

    def __init__(
        self,
        answers: QueryService,
        watched: HealthReader,
        ttl: timedelta,
        now: Callable[[], datetime],
        started_at: datetime = UNIX_EPOCH,
    ) -> None:
        """Read nothing yet.

        Args:
            answers: Has the snapshot.
            watched: Reads what alarms depend on.
            ttl: How long speed rows are kept.
            now: The current time, for alarms.
            started_at: When this process has started.
        """
        self._answers, self._watched, self._ttl, self._now = answers, watched, ttl, now
        self._started_at = started_at

    async def read(self) -> FreshnessReport:
        """Read the report. Raises CassandraUnavailableError."""
        snapshot = await self._answers.snapshot()
        topics = sorted({view.source.topic for view in self._answers.catalogue.views.values()})
        archived = [each for topic in topics for each in await self._answers.readers.receipts.archived(topic)]
        lag = [each for reader in READERS for each in await self._watched.lag(reader)]
        found = await self._watched.publication(snapshot.pointer.publication)
        now = self._now()
        noticed = await self._watched.noticed("clock_stepped_back", found.read_at or UNIX_EPOCH)
        unexplained_alerts = await self._watched.noticed("alerts_unexplained", now - UNEXPLAINED_TIME)
        left_out = await self._watched.noticed("alerts_miskeyed", now - LEFT_OUT_TIME)
        late = await self._late_events(snapshot.pointer)
        ledgers = await self._watched.ledgers(snapshot.pointer.publication)
        alerts_as_of = (await self._watched.alerts()).as_of
        endpoints = await self._watched.endpoints()
        looked_at = await self._watched.alerts_looked_at()
        known = HealthState(
            now,
            snapshot,
            found.published_at,
            found.stats,
            noticed,
            lag,
            self._ttl,
            ledgers,
            alerts_as_of,
            endpoints,
            unexplained_alerts,
            looked_at,
            left_out,
            self._started_at,
            late,
        )
        return FreshnessReport(
            now, snapshot, found.published_at, archived, lag, alarms(known), known.ledger, alerts_as_of, late
        )

    async def _late_events(self, pointer: Pointer) -> LateEvents | None:
        waiting = await self._watched.noticed("late_events", pointer.cut - MILLISECOND)  # the cut's own epoch, too
        if not waiting:
            return None
        left = await self._last_since(pointer, "late_events_left")
        failed = await self._last_since(pointer, "late_events_failed")
        return LateEvents(waiting[0].at, left.detail if left else None, failed)

    async def _last_since(self, pointer: Pointer, name: str) -> AlarmEvent | None:
        """The last event that was recorded since this publication."""
        found = await self._watched.noticed(name, pointer.cut)
        return next((each for each in reversed(found) if each.place == str(pointer.publication)), None)

    async def read_for(self, caller: Caller) -> FreshnessReport:
        """The report as the caller may see it. Raises CassandraUnavailableError."""
        return await self.seen_by(caller, await self.read())

    async def seen_by(self, caller: Caller, fresh: FreshnessReport) -> FreshnessReport:
        """A report as the caller may see it: operators see all of it."""
        return fresh if caller.is_operator else fresh.for_readers(await self._answers.seen_by(caller, fresh.snapshot))

    async def alerts_looked_at(self) -> int:
        """The publication that alerts were compared with last; 0 for none. Raises CassandraUnavailableError."""
        return await self._watched.alerts_looked_at()


def _position(at: Position) -> responses.ReadPosition:
    return responses.ReadPosition(at.topic, at.partition, at.position, iso_instant(at.received_at))
