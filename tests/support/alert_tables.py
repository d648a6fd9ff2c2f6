"""Rules and alerts of a World: tables in memory, folded and read as those of Cassandra are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from master_dataset.registry.rule_versions import Kind, RuleEdit, VersionRow
from master_dataset.registry.tenants import ALL_TENANTS
from serving_layer.alerts.history import AlertPosition, HistoryCoverage, StoredAlert
from views.alerts.alert import Alert, AlertKind, Window, follow_up_id, raised_id

DELAY = timedelta(seconds=60)
NOTHING = HistoryCoverage(None, None)


class WorldVersions:
    """Versions. `is_overtaken`: somebody else is faster from now on. `refuses`: what is raised instead."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.rows: list[VersionRow] = []
        self.is_overtaken = False
        self.refuses: Exception | None = None

    def rules(self, tenant: str) -> Sequence[VersionRow]:
        self._refuse()
        newest = {row.id: row for row in self.rows}
        return [row for row in newest.values() if row.id.rpartition("/")[0] == tenant]

    def all_of(self, kind: Kind, id_: str) -> Sequence[VersionRow]:
        self._refuse()
        return [row for row in reversed(self.rows) if (row.kind, row.id) == (kind, id_)]

    def follow(self, id_: str, body: str, after: int) -> VersionRow | None:
        if self.is_overtaken or len(self.all_of("rule", id_)) != after:
            return None
        self.rows.append(VersionRow("rule", id_, after + 1, self.effective_at(), body))
        return self.rows[-1]

    def follow_all(self, changes: Sequence[RuleEdit]) -> Sequence[VersionRow] | None:
        if self.is_overtaken or any(len(self.all_of("rule", edit.id)) != edit.after for edit in changes):
            return None
        return [row for edit in changes if (row := self.follow(*edit))]

    def effective_at(self) -> datetime:
        return self._now().astimezone(UTC) + DELAY

    def _refuse(self) -> None:
        if self.refuses:
            raise self.refuses


@dataclass
class WorldAlertTables:
    """AlertReader over in-memory alerts. A test sets how far it is complete."""

    known: HistoryCoverage = NOTHING
    rows: dict[str, StoredAlert] = field(default_factory=dict)
    tenants: dict[str, str] = field(default_factory=dict)
    looked_at: int = 0

    def raised(self, at: str, *, store: str = "1", rule: str = "queue", tenant: str = "default", **said: Any) -> str:
        """An alert; its id."""
        window = Window(at)
        id_ = raised_id(rule, 1, (tenant, store), window, {})
        alert = Alert(
            alert_id=id_,
            kind="raised",
            rule=rule,
            version=1,
            tenant=tenant,
            store=store,
            window=window,
            dimensions={},
            value=Decimal(6),
            threshold=Decimal(4),
            sentence=f"The queue of store {store} has been above 4 for 3 minutes.",
            raised_at=at,
        )
        alert = msgspec.structs.replace(alert, **said)
        self.rows[id_] = StoredAlert(datetime.fromisoformat(at), id_, alert.to_json().decode())
        self.tenants[id_] = tenant
        return id_

    def followed(self, id_: str, kind: AlertKind, at: str, reason: str = "over") -> None:
        """That it is over, or was wrong."""
        alert = self.rows[id_].alert
        said = msgspec.structs.replace(
            alert,
            alert_id=follow_up_id(id_, kind),
            kind=kind,
            about=id_,
            raised_at=at,
            reason=reason,
            provisional=alert.provisional and kind != "retracted",
        )
        text = said.to_json().decode()
        stored = self.rows[id_]
        self.rows[id_] = stored._replace(resolved=text) if kind == "resolved" else stored._replace(retracted=text)

    async def kept(self) -> HistoryCoverage:
        return self.known

    async def days(self, visibility_scope: str, last: date, limit: int) -> Sequence[date]:
        found = {stored.raised_at.astimezone(UTC).date() for stored in self._of(visibility_scope)}
        return sorted((day for day in found if day <= last), reverse=True)[:limit]

    async def alerts_of_day(
        self, visibility_scope: str, day: date, before: AlertPosition, limit: int
    ) -> Sequence[StoredAlert]:
        rows = [each for each in self._of(visibility_scope) if each.raised_at.date() == day and each.spot < before]
        self.looked_at += len(rows[:limit])
        return rows[:limit]

    async def open_alerts(self, visibility_scope: str, before: AlertPosition, limit: int) -> Sequence[StoredAlert]:
        return [each for each in self._of(visibility_scope) if each.state == "open" and each.spot < before][:limit]

    async def records(self, alert_id: str) -> Sequence[str]:
        if alert_id not in self.rows:
            return []
        stored = self.rows[alert_id]
        return [text for text in (stored.retracted, stored.resolved, stored.body) if text]

    def _of(self, visibility_scope: str) -> list[StoredAlert]:
        own = [each for id_, each in self.rows.items() if visibility_scope in (ALL_TENANTS, self.tenants[id_])]
        return sorted(own, key=lambda each: each.spot, reverse=True)
