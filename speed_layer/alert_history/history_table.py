"""The tables of alerts that were told. Rows are written by key: folding a record again changes nothing."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from cassandra import DriverException

from master_dataset.errors import StoreUnavailable
from views.alerts.alert import EVERYBODY, Kind

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from cassandra.query import PreparedStatement

_BUCKET = 0
_KEY = "sight = ? AND day = ? AND raised_at = ? AND alert_id = ?"
_UPDATE = {
    "resolved": f"UPDATE alerts_told SET resolved = ? WHERE {_KEY}",  # noqa: S608 - our own columns
    "retracted": f"UPDATE alerts_told SET retracted = ? WHERE {_KEY}",  # noqa: S608 - our own columns
}
_END = "DELETE FROM alerts_open USING TIMESTAMP 2 WHERE sight = ? AND raised_at = ? AND alert_id = ?"


class Said(msgspec.Struct):
    """What has to be known of a record to keep it; whatever else it says is kept as it is."""

    alert_id: str
    kind: Kind
    tenant: str
    raised_at: datetime
    about: str | None = None


class Kept(NamedTuple):
    """How far one partition is folded; see the table `alerts_kept`."""

    position: int
    as_of: datetime | None
    complete_from: datetime | None


class HistoryTable:
    """Written by one keeper; a second one would write the same. Every method raises StoreUnavailable."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._prepared: dict[str, PreparedStatement] = {}

    def keep(self, value: bytes) -> None:
        """Fold a record of the topic."""
        said, body = msgspec.json.decode(value, type=Said), value.decode()
        whole = said.about or said.alert_id
        self._run("INSERT INTO alert_records (alert_id, record_id, body) VALUES (?, ?, ?)", whole, said.alert_id, body)
        raised = said if said.kind == "raised" else self._raised(whole)
        if raised is None:  # it was told before anybody kept alerts
            return
        for sight in (raised.tenant, EVERYBODY):
            if said.kind == "raised":
                self._raise(sight, raised, body)
            else:
                self._follow(sight, raised, said.kind, body)

    def reached(self) -> dict[int, Kept]:
        """How far each partition is folded."""
        asked = "SELECT partition, position, as_of, complete_from FROM alerts_kept WHERE bucket = ?"
        return {
            row.partition: Kept(row.position, _utc(row.as_of), _utc(row.complete_from))
            for row in self._run(asked, _BUCKET)
        }

    def reach(self, partition: int, kept: Kept, now: datetime) -> None:
        """Say how far it is folded, behind all that it says."""
        columns = "bucket, partition, position, as_of, complete_from, measured_at"
        said = f"INSERT INTO alerts_kept ({columns}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own columns
        self._run(said, _BUCKET, partition, *kept, now)

    def _raise(self, sight: str, raised: Said, body: str) -> None:
        day, place = raised.raised_at.date(), (raised.raised_at, raised.alert_id, body)
        self._run("INSERT INTO alert_days (sight, day) VALUES (?, ?)", sight, day)  # first: a day is found by it
        columns = "sight, day, raised_at, alert_id, body"
        self._run(f"INSERT INTO alerts_told ({columns}) VALUES (?, ?, ?, ?, ?)", sight, day, *place)  # noqa: S608
        columns = "sight, raised_at, alert_id, body"
        self._run(
            f"INSERT INTO alerts_open ({columns}) VALUES (?, ?, ?, ?) USING TIMESTAMP 1",  # noqa: S608
            sight, *place,
        )  # fmt: skip

    def _follow(self, sight: str, raised: Said, kind: Kind, body: str) -> None:
        place = (raised.raised_at, raised.alert_id)
        self._run(_UPDATE[kind], body, sight, raised.raised_at.date(), *place)
        self._run(
            "DELETE FROM alerts_open USING TIMESTAMP 2 WHERE sight = ? AND raised_at = ? AND alert_id = ?",
            sight,
            *place,
        )

    def _raised(self, alert_id: str) -> Said | None:
        asked = "SELECT body FROM alert_records WHERE alert_id = ? AND record_id = ?"
        for row in self._run(asked, alert_id, alert_id):
            return msgspec.json.decode(row.body, type=Said)
        return None

    def _run(self, cql: str, *values: object) -> Iterator[Any]:
        try:
            if cql not in self._prepared:
                self._prepared[cql] = self._session.prepare(cql)
            return iter(self._session.execute(self._prepared[cql], values))
        except DriverException as error:
            raise StoreUnavailable("alerts cannot be listed for serving", do="galatea status") from error


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at else None
