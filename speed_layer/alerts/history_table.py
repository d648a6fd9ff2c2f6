"""The tables of alerts that were told. Rows are written by key: folding a record again changes nothing."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from views.alerts.alert import ALL_TENANTS, AlertKind

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from cassandra.query import PreparedStatement

_BUCKET = 0
_KEY = "sight = ? AND day = ? AND raised_at = ? AND alert_id = ?"
_UPDATE = {
    "resolved": f"UPDATE alerts_told SET resolved = ? WHERE {_KEY}",  # noqa: S608 - our own columns
    "retracted": f"UPDATE alerts_told SET retracted = ? WHERE {_KEY}",  # noqa: S608 - our own columns
}
_SPOT = "sight = ? AND hour = ? AND raised_at = ? AND alert_id = ?"
_END = f"DELETE FROM alerts_open_by_hour USING TIMESTAMP 2 WHERE {_SPOT}"  # noqa: S608 - our own columns
_QUIET = timedelta(hours=2)
"""Behind an hour that begins; whether anything in it is open still is looked at from then on."""
_BEAT_EACH = 100


class RecordHeader(msgspec.Struct):
    """What has to be known of a record to keep it; whatever else it says is kept as it is."""

    alert_id: str
    kind: AlertKind
    tenant: str
    raised_at: datetime
    about: str | None = None


class _Record(NamedTuple):
    said: RecordHeader
    body: str


class HistoryPosition(NamedTuple):
    """How far one partition is folded; see the table `alerts_kept`."""

    position: int
    as_of: datetime | None
    complete_from: datetime | None


class HistoryTable:
    """Written by one keeper; a second one would write the same. Every method raises CassandraUnavailableError."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._prepared: dict[str, PreparedStatement] = {}
        self._hours: set[tuple[str, datetime]] = set()

    def keep(self, value: bytes) -> None:
        """Fold a record of the topic."""
        said, body = msgspec.json.decode(value, type=RecordHeader), value.decode()
        whole = said.about or said.alert_id
        self._run("INSERT INTO alert_records (alert_id, record_id, body) VALUES (?, ?, ?)", whole, said.alert_id, body)
        if said.kind == "raised":
            self._list(said, body)
            return
        raised = self._raised(whole)
        if raised is None:  # it was told before anybody kept alerts, or is listed when that comes
            return
        for sight in (raised.tenant, ALL_TENANTS):
            self._follow(sight, raised, said.kind, body)

    def move_open(self, beat: Callable[[], None], now: datetime) -> None:
        """Have what is open listed by the hour, unless that was done: of tables that were kept before there were hours.

        `alerts_told` says what it is, of every day that there is: the former list may be too long to be read.
        """
        if self._run("SELECT moved_at FROM alerts_open_moved WHERE bucket = ?", _BUCKET):
            return
        columns = (
            "alert_id, writetime(body) AS told, writetime(resolved) AS resolved, writetime(retracted) AS retracted"
        )
        asked = f"SELECT {columns} FROM alerts_told WHERE sight = ? AND day = ?"  # noqa: S608 - our own columns
        for day in self._run("SELECT day FROM alert_days WHERE sight = ?", ALL_TENANTS):
            rows = self._run(asked, ALL_TENANTS, day.day)
            still_open = [each.alert_id for each in rows if each.told and not (each.resolved or each.retracted)]
            for number, alert_id in enumerate(still_open):
                for raised in self._records(alert_id):
                    if raised.said.kind == "raised":
                        self._list(*raised)
                if number % _BEAT_EACH == 0:
                    beat()
            beat()
        self._run("INSERT INTO alerts_open_moved (bucket, moved_at) VALUES (?, ?)", _BUCKET, now)

    def tidy(self, beat: Callable[[], None], now: datetime) -> None:
        """Forget hours in which nothing is open any more: whoever lists what is open looks into each of them."""
        for row in self._run("SELECT sight, hour FROM alert_open_hours"):
            beat()
            hour = row.hour.replace(tzinfo=UTC)
            asked = "SELECT alert_id FROM alerts_open_by_hour WHERE sight = ? AND hour = ? LIMIT 1"
            if hour < now - _QUIET and not self._run(asked, row.sight, hour):
                self._hours.discard((row.sight, hour))  # a relay that is behind may still raise some in it
                self._run("DELETE FROM alert_open_hours WHERE sight = ? AND hour = ? IF EXISTS", row.sight, hour)

    def reached(self) -> dict[int, HistoryPosition]:
        """How far each partition is folded."""
        asked = "SELECT partition, position, as_of, complete_from FROM alerts_kept WHERE bucket = ?"
        return {
            row.partition: HistoryPosition(row.position, _utc(row.as_of), _utc(row.complete_from))
            for row in self._run(asked, _BUCKET)
        }

    def reach(self, partition: int, kept: HistoryPosition, now: datetime) -> None:
        """Say how far it is folded, behind all that it says."""
        columns = "bucket, partition, position, as_of, complete_from, measured_at"
        said = f"INSERT INTO alerts_kept ({columns}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own columns
        self._run(said, _BUCKET, partition, *kept, now)

    def _list(self, raised: RecordHeader, body: str) -> None:
        """With what was folded of it before it was raised."""
        followed = [each for each in self._records(raised.alert_id) if each.said.kind != "raised"]
        for sight in (raised.tenant, ALL_TENANTS):
            self._raise(sight, raised, body)
            for each in followed:
                self._follow(sight, raised, each.said.kind, each.body)

    def _raise(self, sight: str, raised: RecordHeader, body: str) -> None:
        day, place = raised.raised_at.date(), (raised.raised_at, raised.alert_id, body)
        self._run("INSERT INTO alert_days (sight, day) VALUES (?, ?)", sight, day)  # first: a day is found by it
        columns = "sight, day, raised_at, alert_id, body"
        self._run(f"INSERT INTO alerts_told ({columns}) VALUES (?, ?, ?, ?, ?)", sight, day, *place)  # noqa: S608
        self._open(sight, raised, body)

    def _open(self, sight: str, raised: RecordHeader, body: str) -> None:
        hour = hour_of(raised.raised_at)
        if (sight, hour) not in self._hours:  # first, as with days
            self._run("INSERT INTO alert_open_hours (sight, hour) VALUES (?, ?) IF NOT EXISTS", sight, hour)
            self._hours.add((sight, hour))
        columns = "sight, hour, raised_at, alert_id, body"
        self._run(
            f"INSERT INTO alerts_open_by_hour ({columns}) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP 1",  # noqa: S608
            sight,
            hour,
            raised.raised_at,
            raised.alert_id,
            body,
        )

    def _follow(self, sight: str, raised: RecordHeader, kind: AlertKind, body: str) -> None:
        place = (raised.raised_at, raised.alert_id)
        self._run(_UPDATE[kind], body, sight, raised.raised_at.date(), *place)
        self._run(_END, sight, hour_of(raised.raised_at), *place)

    def _raised(self, alert_id: str) -> RecordHeader | None:
        return next((each.said for each in self._records(alert_id) if each.said.kind == "raised"), None)

    def _records(self, alert_id: str) -> Sequence[_Record]:
        rows = self._run("SELECT body FROM alert_records WHERE alert_id = ?", alert_id)
        return [_Record(msgspec.json.decode(row.body, type=RecordHeader), row.body) for row in rows]

    def _run(self, cql: str, *values: object) -> Sequence[Any]:
        try:
            if cql not in self._prepared:
                self._prepared[cql] = self._session.prepare(cql)
            return list(self._session.execute(self._prepared[cql], values))
        except CASSANDRA_UNAVAILABLE as error:
            raise CassandraUnavailableError("alerts cannot be listed for serving", do="galatea status") from error


def hour_of(at: datetime) -> datetime:
    """The UTC hour in which an alert was raised."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at else None
