"""The tables of alerts and of their rules.

AlertTables   alerts_told, alerts_open, alerts_open_by_hour, alert_records, and how far they go
RuleTables    alert_versions, as far as rules are concerned
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import TypeVar

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.rule_versions import Kind, RuleEdit, RuleVersions, VersionRow
from serving_layer.alerts.history import AlertPosition, HistoryCoverage, StoredAlert
from serving_layer.tables.async_session import AsyncSession, day_of, instant_of, optional_instant

_BUCKET = 0


class AlertTables:
    """Implements `AlertReader` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        behind = "AND (raised_at, alert_id) < (?, ?) LIMIT ?"
        self._kept = session.prepare("SELECT as_of, complete_from FROM alerts_kept WHERE bucket = ?")
        self._days = session.prepare("SELECT day FROM alert_days WHERE sight = ? AND day <= ? LIMIT ?")
        self._alerts_of_day = session.prepare(
            "SELECT raised_at, alert_id, body, resolved, retracted FROM alerts_told "  # noqa: S608 - our own columns
            f"WHERE sight = ? AND day = ? {behind}"
        )
        columns = "raised_at, alert_id, body"
        self._moved = session.prepare("SELECT moved_at FROM alerts_open_moved WHERE bucket = ?")
        self._before = session.prepare(f"SELECT {columns} FROM alerts_open WHERE sight = ? {behind}")  # noqa: S608
        self._hours = session.prepare("SELECT hour FROM alert_open_hours WHERE sight = ? AND hour <= ?")
        self._open = session.prepare(
            f"SELECT {columns} FROM alerts_open_by_hour WHERE sight = ? AND hour = ? {behind}"  # noqa: S608
        )
        self._is_moved = False
        self._records = session.prepare("SELECT body FROM alert_records WHERE alert_id = ?")

    async def kept(self) -> HistoryCoverage:
        """How far the history goes back in every partition."""
        rows = await self._session.rows(self._kept, _BUCKET)
        return HistoryCoverage.of([HistoryCoverage(*(optional_instant(at) for at in row)) for row in rows])

    async def days(self, visibility_scope: str, last: date, limit: int) -> Sequence[date]:
        """Newest first, as the table is sorted."""
        return [day_of(day) for (day,) in await self._session.rows(self._days, visibility_scope, last, limit)]

    async def alerts_of_day(
        self, visibility_scope: str, day: date, before: AlertPosition, limit: int
    ) -> Sequence[StoredAlert]:
        """Newest first, as the table is sorted. A row without a body is half written."""
        rows = await self._session.rows(self._alerts_of_day, visibility_scope, day, *before, limit)
        return [StoredAlert(instant_of(at), *columns) for at, *columns in rows if columns[1]]

    async def open_alerts(self, visibility_scope: str, before: AlertPosition, limit: int) -> Sequence[StoredAlert]:
        """Newest first, as the table is sorted."""
        # Until the history writer has moved open alerts to the new table, they are in the old one.
        self._is_moved = self._is_moved or bool(await self._session.rows(self._moved, _BUCKET))
        if not self._is_moved:
            rows = await self._session.rows(self._before, visibility_scope, *before, limit)
            return [StoredAlert(instant_of(at), *columns) for at, *columns in rows]
        found: list[StoredAlert] = []
        for (hour,) in await self._session.rows(self._hours, visibility_scope, before.raised_at):
            rows = await self._session.rows(self._open, visibility_scope, instant_of(hour), *before, limit - len(found))
            found += [StoredAlert(instant_of(at), *columns) for at, *columns in rows]
            if len(found) == limit:
                break
        return found

    async def records(self, alert_id: str) -> Sequence[str]:
        """The records of an alert, in the order of their ids."""
        return [body for (body,) in await self._session.rows(self._records, alert_id)]


Found = TypeVar("Found")


class RuleTables:
    """The versions of alert rules in Cassandra. Every method blocks."""

    def __init__(self, versions: RuleVersions) -> None:
        """`versions`: as they are kept."""
        self._versions = versions

    def rules(self, tenant: str) -> Sequence[VersionRow]:
        """See `Versions.rules`."""
        return _translated(lambda: self._versions.rules(tenant))

    def all_of(self, kind: Kind, id_: str) -> Sequence[VersionRow]:
        """See `Versions.all_of`."""
        return _translated(lambda: self._versions.all_of(kind, id_))

    def follow(self, id_: str, body: str, after: int) -> VersionRow | None:
        """See `Versions.follow`."""
        return _translated(lambda: self._versions.follow(id_, body, after))

    def follow_all(self, changes: Sequence[RuleEdit]) -> Sequence[VersionRow] | None:
        """See `Versions.follow_all`."""
        return _translated(lambda: self._versions.follow_all(changes))

    def effective_at(self) -> datetime:
        """See `Versions.effective_at`."""
        return self._versions.effective_at()


def _translated(call: Callable[[], Found]) -> Found:
    try:
        return call()
    except CASSANDRA_UNAVAILABLE as error:
        message = f"Cassandra did not answer: {type(error).__name__}."
        raise CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.") from error
