"""The tables of emitted alerts. Rows are written by key: writing a record again changes nothing."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.tenants import ALL_TENANTS
from views.alerts.alert import AlertKind

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from cassandra.query import PreparedStatement

_BUCKET = 0
_KEY = "sight = ? AND day = ? AND raised_at = ? AND alert_id = ?"
_UPDATE = {
    "resolved": f"UPDATE alerts_told SET resolved = ? WHERE {_KEY}",  # noqa: S608 - our own columns
    "retracted": f"UPDATE alerts_told SET retracted = ? WHERE {_KEY}",  # noqa: S608 - our own columns
}
_OPEN_KEY = "sight = ? AND hour = ? AND raised_at = ? AND alert_id = ?"
_DELETE_OPEN = f"DELETE FROM alerts_open_by_hour USING TIMESTAMP 2 WHERE {_OPEN_KEY}"  # noqa: S608 - our own columns
_PRUNE_AFTER = timedelta(hours=2)
"""After the start of an hour: by then its alerts have been raised."""
_BEAT_EVERY = 100


class RecordHeader(msgspec.Struct):
    """The fields of an alert that are needed to store it. The record itself is stored unchanged."""

    alert_id: str
    kind: AlertKind
    tenant: str
    raised_at: datetime
    about: str | None = None


class _Record(NamedTuple):
    header: RecordHeader
    body: str


class HistoryPosition(NamedTuple):
    """How far one partition has been stored, as in the table `alerts_kept`.

    Attributes:
        position: Everything before this offset is stored.
        as_of: The tables contain every alert about events received before this time; None if unknown.
        complete_from: Alerts before this time may be missing, because the topic had deleted them; None if there is no
            gap.
    """

    position: int
    as_of: datetime | None
    complete_from: datetime | None


class HistoryTable:
    """Implements `AlertHistory`.

    Concurrent writers write the same rows. Every method raises CassandraUnavailableError.
    """

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._prepared: dict[str, PreparedStatement] = {}
        self._known_hours: set[tuple[str, datetime]] = set()

    def write(self, value: bytes) -> None:
        """Write the rows of a record of the topic."""
        header, body = msgspec.json.decode(value, type=RecordHeader), value.decode()
        subject = header.about or header.alert_id
        self._run(
            "INSERT INTO alert_records (alert_id, record_id, body) VALUES (?, ?, ?)", subject, header.alert_id, body
        )
        if header.kind == "raised":
            self._write_raised(header, body)
            return
        raised = self._raised(subject)
        if (
            raised is None
        ):  # emitted before there was a history, or read before it: then it is listed with the raised one
            return
        for scope in (raised.tenant, ALL_TENANTS):
            self._write_follow_up(scope, raised, header.kind, body)

    def migrate_open_alerts(self, beat: Callable[[], None], now: datetime) -> None:
        """Fill the list of open alerts by hour once, for tables written by a release that did not have it.

        The alerts are found through `alerts_told`, day by day, because the former list may be too long to read.
        """
        if self._run("SELECT moved_at FROM alerts_open_moved WHERE bucket = ?", _BUCKET):
            return
        columns = (
            "alert_id, writetime(body) AS raised, writetime(resolved) AS resolved, writetime(retracted) AS retracted"
        )
        query = f"SELECT {columns} FROM alerts_told WHERE sight = ? AND day = ?"  # noqa: S608 - our own columns
        for day in self._run("SELECT day FROM alert_days WHERE sight = ?", ALL_TENANTS):
            rows = self._run(query, ALL_TENANTS, day.day)
            still_open = [each.alert_id for each in rows if each.raised and not (each.resolved or each.retracted)]
            for number, alert_id in enumerate(still_open):
                for raised in self._records(alert_id):
                    if raised.header.kind == "raised":
                        self._write_raised(*raised)
                if number % _BEAT_EVERY == 0:
                    beat()
            beat()
        self._run("INSERT INTO alerts_open_moved (bucket, moved_at) VALUES (?, ?)", _BUCKET, now)

    def prune(self, beat: Callable[[], None], now: datetime) -> None:
        """Delete hours without open alerts from the list of hours, because each hour costs a query."""
        for row in self._run("SELECT sight, hour FROM alert_open_hours"):
            beat()
            hour = row.hour.replace(tzinfo=UTC)
            query = "SELECT alert_id FROM alerts_open_by_hour WHERE sight = ? AND hour = ? LIMIT 1"
            if hour < now - _PRUNE_AFTER and not self._run(query, row.sight, hour):
                self._known_hours.discard((row.sight, hour))  # late alerts may be raised in it
                self._run("DELETE FROM alert_open_hours WHERE sight = ? AND hour = ? IF EXISTS", row.sight, hour)

    def positions(self) -> dict[int, HistoryPosition]:
        """How far each partition has been stored."""
        query = "SELECT partition, position, as_of, complete_from FROM alerts_kept WHERE bucket = ?"
        return {
            row.partition: HistoryPosition(row.position, _utc(row.as_of), _utc(row.complete_from))
            for row in self._run(query, _BUCKET)
        }

    def save_position(self, partition: int, position: HistoryPosition, now: datetime) -> None:
        """Record how far a partition has been stored, after its rows."""
        columns = "bucket, partition, position, as_of, complete_from, measured_at"
        cql = f"INSERT INTO alerts_kept ({columns}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own columns
        self._run(cql, _BUCKET, partition, *position, now)

    def _write_raised(self, raised: RecordHeader, body: str) -> None:
        """Write it together with the follow-ups that were read before it."""
        follow_ups = [each for each in self._records(raised.alert_id) if each.header.kind != "raised"]
        for scope in (raised.tenant, ALL_TENANTS):
            self._insert(scope, raised, body)
            for each in follow_ups:
                self._write_follow_up(scope, raised, each.header.kind, each.body)

    def _insert(self, scope: str, raised: RecordHeader, body: str) -> None:
        day, key = raised.raised_at.date(), (raised.raised_at, raised.alert_id, body)
        self._run("INSERT INTO alert_days (sight, day) VALUES (?, ?)", scope, day)  # first, as rows are found by it
        columns = "sight, day, raised_at, alert_id, body"
        self._run(f"INSERT INTO alerts_told ({columns}) VALUES (?, ?, ?, ?, ?)", scope, day, *key)  # noqa: S608
        self._insert_open(scope, raised, body)

    def _insert_open(self, scope: str, raised: RecordHeader, body: str) -> None:
        hour = hour_of(raised.raised_at)
        if (scope, hour) not in self._known_hours:  # first, as with days
            self._run("INSERT INTO alert_open_hours (sight, hour) VALUES (?, ?) IF NOT EXISTS", scope, hour)
            self._known_hours.add((scope, hour))
        columns = "sight, hour, raised_at, alert_id, body"
        self._run(
            f"INSERT INTO alerts_open_by_hour ({columns}) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP 1",  # noqa: S608
            scope,
            hour,
            raised.raised_at,
            raised.alert_id,
            body,
        )

    def _write_follow_up(self, scope: str, raised: RecordHeader, kind: AlertKind, body: str) -> None:
        key = (raised.raised_at, raised.alert_id)
        self._run(_UPDATE[kind], body, scope, raised.raised_at.date(), *key)
        self._run(_DELETE_OPEN, scope, hour_of(raised.raised_at), *key)

    def _raised(self, alert_id: str) -> RecordHeader | None:
        return next((each.header for each in self._records(alert_id) if each.header.kind == "raised"), None)

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
