"""The history of alerts: stored alerts, listed page by page in bounded memory."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, NamedTuple, Protocol, Self, get_args

import msgspec
import structlog
from prometheus_client import Counter

from master_dataset.errors import UnknownNameError
from serving_layer.responses.alerts import AlertDetail, AlertState, ListedAlert
from serving_layer.responses.encoding import encoded, iso_instant
from serving_layer.store.readers import PublishedReader
from views.alerts.alert import Alert, alert_statuses, is_alert_id, is_provisional
from views.core.cut import UNIX_EPOCH

_decode = msgspec.json.Decoder(Alert).decode
_MS = timedelta(milliseconds=1)
UNREADABLE = Counter(
    "galatea_alert_rows_unreadable", "Stored records of alerts that cannot be read and were left out of responses."
)
log = structlog.get_logger()


def read_record(text: str) -> Alert | None:
    """A stored record; None, and counted, if it cannot be read: former releases did not check what they stored."""
    try:
        return Alert.from_json(text)
    except msgspec.ValidationError:
        UNREADABLE.inc()
        return None


class AlertPosition(NamedTuple):
    """The position of an alert in a list of a visibility scope; lists are newest first."""

    raised_at: datetime
    alert_id: str


class StoredAlert(NamedTuple):
    """An alert and what followed it. Each text is a record of the topic `alerts` as JSON.

    Only `spot` and `readable` may be used before it is known that the texts can be read.
    """

    raised_at: datetime
    alert_id: str
    body: str
    resolved: str | None = None
    retracted: str | None = None

    @property
    def spot(self) -> AlertPosition:
        """Its position in lists."""
        return AlertPosition(self.raised_at, self.alert_id)

    def readable(self) -> "StoredAlert | None":
        """The alert without followers that cannot be read; None if it cannot be read itself."""
        alert = read_record(self.body)
        if alert is None or alert.kind != "raised" or alert.alert_id != self.alert_id:
            return None
        resolved, retracted = (self._follower(kind, getattr(self, kind)) for kind in ("resolved", "retracted"))
        return self._replace(resolved=resolved, retracted=retracted)

    def _follower(self, kind: str, text: str | None) -> str | None:
        record = read_record(text) if text else None
        return text if record is not None and (record.kind, record.about) == (kind, self.alert_id) else None

    @property
    def alert(self) -> Alert:
        """The alert as it was raised, without what happened to it since."""
        return _decode(self.body)

    @property
    def state(self) -> AlertState:
        """`open` unless it was resolved or retracted."""
        return "retracted" if self.retracted else "resolved" if self.resolved else "open"

    @property
    def following(self) -> Alert | None:
        """The last record after it was raised; None for an open alert."""
        text = self.retracted or self.resolved
        return _decode(text) if text else None

    def is_provisional(self, cut: datetime) -> bool:
        """Whether no audited publication has covered it yet. `cut`: of `audited_cut`."""
        records = [_decode(text) for text in (self.body, self.retracted, self.resolved) if text]
        [status] = alert_statuses(records).values()
        return is_provisional(status, (cut - UNIX_EPOCH) // _MS)

    def response(self, cut: datetime) -> ListedAlert:
        """The alert as the API lists it. `cut`: of `audited_cut`."""
        alert = self.alert
        resolved, retracted = (_decode(text) if text else None for text in (self.resolved, self.retracted))
        return ListedAlert(
            alert_id=alert.alert_id,
            state=self.state,
            rule=alert.rule,
            version=alert.version,
            tenant=alert.tenant,
            store=alert.store,
            window=alert.window,
            dimensions=alert.dimensions,
            value=alert.value,
            threshold=alert.threshold,
            baseline=alert.baseline,
            sentence=alert.sentence,
            provisional=self.is_provisional(cut),
            late=alert.late,
            raised_at=alert.raised_at,
            place=alert.place,
            publication=alert.publication,
            cause=alert.cause,
            shown=alert.shown,
            corrected=alert.corrected,
            resolved_at=resolved.raised_at if resolved else None,
            resolved_because=resolved.reason if resolved else None,
            retracted_at=retracted.raised_at if retracted else None,
            retracted_because=retracted.reason if retracted else None,
        )

    def detail(self, cut: datetime, kept: "HistoryCoverage", records: Sequence[Alert]) -> AlertDetail:
        """The alert as the API shows it alone. `kept`: read before the records. `cut`: of `audited_cut`."""
        listed = msgspec.structs.asdict(self.response(cut))
        return AlertDetail(iso_instant(kept.as_of), iso_instant(kept.complete_from), **listed, records=records)


class HistoryCoverage(NamedTuple):
    """Which alerts the history contains.

    Args:
        as_of: all events received before were evaluated, and their alerts are stored; None if there never were any.
        complete_from: earlier alerts are missing; None if none is.
    """

    as_of: datetime | None
    complete_from: datetime | None

    @classmethod
    def of(cls, parts: Sequence[Self]) -> Self:
        """The coverage of all partitions together."""
        times = [part.as_of for part in parts]
        as_of = None if not times or None in times else min(at for at in times if at)
        return cls(as_of, max((part.complete_from for part in parts if part.complete_from), default=None))


class AlertReader(Protocol):
    """Reads stored alerts. Every method raises CassandraUnavailableError.

    Read the coverage before the alerts, which can then only be newer.
    """

    async def kept(self) -> HistoryCoverage:
        """Which alerts are stored."""

    async def days(self, visibility_scope: str, last: date, limit: int) -> Sequence[date]:
        """UTC days with alerts in the visibility scope, from the last one backwards."""

    async def alerts_of_day(
        self, visibility_scope: str, day: date, before: AlertPosition, limit: int
    ) -> Sequence[StoredAlert]:
        """Alerts of one day after that position, newest first."""

    async def open_alerts(self, visibility_scope: str, before: AlertPosition, limit: int) -> Sequence[StoredAlert]:
        """Open alerts after that position, newest first."""

    async def records(self, alert_id: str) -> Sequence[str]:
        """All records of an alert in any order; none if it does not exist."""


State = Literal["open", "resolved", "retracted"]
STATES: tuple[State, ...] = get_args(State)
MOST_LOOKED_AT = 5_000
"""Alerts examined for one page. If few of them match, the page is short and says where to continue."""
_CHUNK = 500
_DAYS = 366
END = datetime(2200, 1, 1, tzinfo=UTC)
_AFTER_ALL_IDS = "\x7f"


@dataclass(frozen=True)
class AlertsRequest:
    """Which alerts to list. No stores means all. `since` (inclusive) and `until` (exclusive) are of `raised_at`."""

    visibility_scope: str
    stores: frozenset[str] = frozenset()
    rule: str | None = None
    state: State | tuple[State, ...] | None = None
    since: datetime = UNIX_EPOCH
    until: datetime = END
    limit: int = 100
    after: AlertPosition | None = None

    @property
    def states(self) -> tuple[State, ...]:
        """The states that match."""
        return self.state if isinstance(self.state, tuple) else (self.state,) if self.state else STATES

    @property
    def before(self) -> AlertPosition:
        """The position after which the page begins."""
        last = AlertPosition(self.until - timedelta(milliseconds=1), _AFTER_ALL_IDS)
        return last if self.after is None else min(last, self.after)

    def fits(self, stored: StoredAlert) -> bool:
        """Whether the alert matches, apart from its time."""
        alert = stored.alert
        if self.rule is not None and alert.rule != self.rule:
            return False
        return (not self.stores or alert.store in self.stores) and (self.state is None or stored.state in self.states)


class AlertListPage(NamedTuple):
    """A page of alerts. `following`: the position after which the next page begins; None on the last page."""

    kept: HistoryCoverage
    alerts: Sequence[StoredAlert]
    following: AlertPosition | None


class AlertListing:
    """Lists the alerts of all tenants."""

    def __init__(self, reader: AlertReader) -> None:
        """`reader`: of the stored alerts."""
        self._reader = reader

    async def kept(self) -> HistoryCoverage:
        """Which alerts are stored. Raises CassandraUnavailableError."""
        return await self._reader.kept()

    async def page(self, ask: AlertsRequest) -> AlertListPage:
        """List a page of alerts, newest first, without rows that cannot be read. Raises CassandraUnavailableError."""
        kept = await self._reader.kept()  # before the rows
        found: list[StoredAlert] = []
        unreadable: list[StoredAlert] = []
        looked_at, last, following = 0, ask.before, None
        rows = self._open_ones(ask) if ask.state == "open" else self._every(ask)
        async for stored in rows:
            if stored.raised_at < ask.since:
                break
            is_full = len(found) == ask.limit or looked_at >= MOST_LOOKED_AT
            if is_full and is_alert_id(last.alert_id):  # a page token holds no other ids
                following = last
                break
            looked_at, last = looked_at + 1, stored.spot
            readable = stored.readable()
            if readable is None:
                unreadable.append(stored)
            elif ask.fits(readable):
                found.append(readable)
        if unreadable:
            log.warning("alerts.unreadable_rows", rows=len(unreadable), first=unreadable[0].alert_id[:64])
        return AlertListPage(kept, found, following)

    async def one(self, visibility_scope: str | None, alert_id: str) -> tuple[StoredAlert, list[Alert]]:
        """An alert and its records in order. `visibility_scope`: None for any tenant. Raises UnknownNameError."""
        records = {"raised": "", "resolved": "", "retracted": ""}
        alert: Alert | None = None
        for body in await self._reader.records(alert_id):
            record = read_record(body)
            if record is not None and (record.about or record.alert_id) == alert_id:
                records[record.kind] = body
                alert = record if record.kind == "raised" else alert
        if alert is None or (visibility_scope is not None and alert.tenant != visibility_scope):
            do = "Use an id that `GET /v1/alerts` gave."
            raise UnknownNameError("alert", alert_id, (), do=do)
        stored = StoredAlert(
            datetime.fromisoformat(alert.raised_at),
            alert_id,
            records["raised"],
            records["resolved"] or None,
            records["retracted"] or None,
        )
        return stored, [encoded(text, Alert) for text in records.values() if text]

    async def _open_ones(self, ask: AlertsRequest) -> AsyncIterator[StoredAlert]:
        before = ask.before
        while rows := await self._reader.open_alerts(ask.visibility_scope, before, _CHUNK):
            for stored in rows:
                yield stored
            before = rows[-1].spot

    async def _every(self, ask: AlertsRequest) -> AsyncIterator[StoredAlert]:
        last = ask.before.raised_at.astimezone(UTC).date()
        while days := await self._reader.days(ask.visibility_scope, last, _DAYS):
            for day in days:
                if day < ask.since.astimezone(UTC).date():
                    return
                before = ask.before
                while rows := await self._reader.alerts_of_day(ask.visibility_scope, day, before, _CHUNK):
                    for stored in rows:
                        yield stored
                    before = rows[-1].spot
            last = days[-1] - timedelta(days=1)


class AuditReader(Protocol):
    """Reads which publication was audited last."""

    async def alerts_looked_at(self) -> int:
        """The publication that alerts were compared with last; 0 for none. Raises CassandraUnavailableError."""


async def audited_cut(audits: AuditReader, published: PublishedReader) -> datetime:
    """The cut of the publication that alerts were compared with last; `UNIX_EPOCH` for none.

    A publication whose audit is postponed does not count. After a rollback the cut of the current publication applies
    if it is earlier. Read it before the alerts, which can then only be newer. Raises CassandraUnavailableError.
    """
    audited = await published.entry(await audits.alerts_looked_at())
    pointer = await published.pointer()
    return UNIX_EPOCH if audited is None else min(audited.cut, pointer.cut)
