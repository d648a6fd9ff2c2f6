"""The tables of emitted alerts. Rows are written by key: writing a record again changes nothing."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import structlog

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.tenants import ALL_TENANTS
from views.alerts.alert import Alert, AlertKind

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
log = structlog.get_logger()


class _Record(NamedTuple):
    """`body`: the record as it was in the topic, which is stored unchanged."""

    alert: Alert
    body: str

    @property
    def raised_at(self) -> datetime:
        return datetime.fromisoformat(self.alert.raised_at)


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
        """Write the rows of a record of the topic. msgspec.ValidationError, and no rows, if it is no alert."""
        record = _Record(Alert.from_json(value), value.decode())
        alert = record.alert
        subject = alert.about or alert.alert_id
        self._run(
            "INSERT INTO alert_records (alert_id, record_id, body) VALUES (?, ?, ?)",
            subject,
            alert.alert_id,
            record.body,
        )
        if alert.kind == "raised":
            self._write_raised(record)
            return
        raised = self._raised(subject)
        if (
            raised is None
        ):  # emitted before there was a history, or read before it: then it is listed with the raised one
            return
        for scope in (raised.alert.tenant, ALL_TENANTS):
            self._write_follow_up(scope, raised, alert.kind, record.body)

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
                    if raised.alert.kind == "raised":
                        self._write_raised(raised)
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

    def _write_raised(self, raised: _Record) -> None:
        """Write it together with the follow-ups that were read before it."""
        follow_ups = [each for each in self._records(raised.alert.alert_id) if each.alert.kind != "raised"]
        for scope in (raised.alert.tenant, ALL_TENANTS):
            self._insert(scope, raised)
            for each in follow_ups:
                self._write_follow_up(scope, raised, each.alert.kind, each.body)

    def _insert(self, scope: str, raised: _Record) -> None:
        day, key = day_of(raised.raised_at), (raised.raised_at, raised.alert.alert_id, raised.body)
        self._run("INSERT INTO alert_days (sight, day) VALUES (?, ?)", scope, day)  # first, as rows are found by it
        columns = "sight, day, raised_at, alert_id, body"
        self._run(f"INSERT INTO alerts_told ({columns}) VALUES (?, ?, ?, ?, ?)", scope, day, *key)  # noqa: S608
        self._insert_open(scope, raised)

    def _insert_open(self, scope: str, raised: _Record) -> None:
        hour = hour_of(raised.raised_at)
        if (scope, hour) not in self._known_hours:  # first: rows are found by their hour
            self._run("INSERT INTO alert_open_hours (sight, hour) VALUES (?, ?) IF NOT EXISTS", scope, hour)
            self._known_hours.add((scope, hour))
        columns = "sight, hour, raised_at, alert_id, body"
        self._run(
            f"INSERT INTO alerts_open_by_hour ({columns}) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP 1",  # noqa: S608
            scope,
            hour,
            raised.raised_at,
            raised.alert.alert_id,
            raised.body,
        )

    def _write_follow_up(self, scope: str, raised: _Record, kind: AlertKind, body: str) -> None:
        key = (raised.raised_at, raised.alert.alert_id)
        self._run(_UPDATE[kind], body, scope, day_of(raised.raised_at), *key)
        self._run(_DELETE_OPEN, scope, hour_of(raised.raised_at), *key)

    def _raised(self, alert_id: str) -> _Record | None:
        return next((each for each in self._records(alert_id) if each.alert.kind == "raised"), None)

    def _records(self, alert_id: str) -> Sequence[_Record]:
        """Those that can be read: a former release stored whatever had an id, a kind, a tenant and a time."""
        found: list[_Record] = []
        for row in self._run("SELECT body FROM alert_records WHERE alert_id = ?", alert_id):
            try:
                found.append(_Record(Alert.from_json(row.body), row.body))
            except msgspec.ValidationError as error:
                log.warning("alert_history.unreadable_row", alert_id=alert_id, error=str(error))
        return found

    def _run(self, cql: str, *values: object) -> Sequence[Any]:
        try:
            if cql not in self._prepared:
                self._prepared[cql] = self._session.prepare(cql)
            return list(self._session.execute(self._prepared[cql], values))
        except CASSANDRA_UNAVAILABLE as error:
            raise CassandraUnavailableError("alerts cannot be listed for serving", do="galatea status") from error


def day_of(at: datetime) -> date:
    """The UTC day on which an alert was raised."""
    return at.astimezone(UTC).date()


def hour_of(at: datetime) -> datetime:
    """The UTC hour in which an alert was raised."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at else None
