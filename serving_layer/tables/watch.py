"""`lag`, `alarms`, and what `publications` and `ledgers` keep of a rebuild."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import orjson

from serving_layer.admin.ledger import Ledger
from serving_layer.alerts.history import Kept
from serving_layer.health.watched import Found, Hook, Measured, Noticed
from serving_layer.tables.alerts import AlertTables
from serving_layer.tables.bridge import Bridge, instant_of
from serving_layer.tables.ledgers import LedgerTables
from views.control.publication import SERIES

AT_MOST = 1000
"""So many rows of one alarm are looked at."""
LEDGERS_BACK = 10
"""So many publications are looked at for their ledgers: one is written soon after its publication."""


class WatchTables:
    """WatchReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._ledgers, self._alerts = LedgerTables(bridge), AlertTables(bridge)
        self._lag = bridge.prepare(
            "SELECT topic, partition, position, end_offset, records, oldest_at, moved_at, measured_at "
            "FROM lag WHERE reader = ?"
        )
        self._noticed = bridge.prepare(
            "SELECT noticed_at, place, detail FROM alarms WHERE name = ? AND noticed_at > ? LIMIT ?"
        )
        self._found = bridge.prepare(
            "SELECT published_at, stats FROM publications WHERE series = ? AND publication = ?"
        )
        self._audited = bridge.prepare("SELECT publication FROM alert_audits WHERE series = ?")
        self._hooks = bridge.prepare("SELECT id, url, created_at, suspended_at, removed_at FROM webhook_endpoints")
        self._hook_states = bridge.prepare("SELECT id, failing_since, seen_at, refusing_since FROM webhook_states")

    async def lag(self, reader: str) -> Sequence[Measured]:
        """Per topic and partition."""
        return [
            Measured(reader, topic, number, at, end, records, oldest and instant_of(oldest), *map(instant_of, times))
            for topic, number, at, end, records, oldest, *times in await self._bridge.rows(self._lag, reader)
        ]

    async def noticed(self, name: str, after: datetime) -> Sequence[Noticed]:
        """Oldest first, as the table is sorted."""
        rows = await self._bridge.rows(self._noticed, name, after, AT_MOST)
        return [Noticed(instant_of(at), place, detail) for at, place, detail in rows]

    async def hooks(self) -> Sequence[Hook]:
        """Of all tenants."""
        states = {id_: times for id_, *times in await self._bridge.rows(self._hook_states)}
        return [
            Hook(instant_of(made), suspended and instant_of(suspended), *_instants(states.get(id_, (None, None, None))))
            for id_, url, made, suspended, removed in await self._bridge.rows(self._hooks)
            if url is not None and removed is None
        ]

    async def alerts(self) -> Kept:
        """Of all partitions."""
        return await self._alerts.kept()

    async def alerts_looked_at(self) -> int:
        """One row in all."""
        return max([int(number) for (number,) in await self._bridge.rows(self._audited, SERIES)], default=0)

    async def publication(self, number: int) -> Found:
        """Nothing is known of one that is not there."""
        for published_at, stats in await self._bridge.rows(self._found, SERIES, number):
            return Found(published_at and instant_of(published_at), orjson.loads(stats or "{}"))
        return Found(None, {})

    async def ledgers(self, number: int) -> Sequence[Ledger]:
        """Of the last ten."""
        subjects = map(str, range(number, max(0, number - LEDGERS_BACK), -1))
        found = await asyncio.gather(*map(self._ledgers.ledger, subjects))
        return [ledger for ledger in found if ledger]


def _instants(values: Sequence[datetime | None]) -> Sequence[datetime | None]:
    return [value and instant_of(value) for value in values]
