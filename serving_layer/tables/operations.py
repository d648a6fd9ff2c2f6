"""The tables that operators see.

LedgerTables      ledgers, corrections
RecomputeTables   recomputes
KeyTables         api_keys, and once the list of those to be signed in secrets_key
WatchTables       lag, alarms, webhook_endpoints, and what `publications` and `ledgers` say of a rebuild
"""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import msgspec
import orjson

from master_dataset.errors import CassandraUnavailableError, UnknownNameError
from master_dataset.secrets_key import Purpose, SecretsKey
from serving_layer.admin.ledger import BlockKey, Ledger, LedgerBlock
from serving_layer.admin.publications import RecomputeRecord
from serving_layer.alerts.history import HistoryCoverage
from serving_layer.health.watched import AlarmEvent, EndpointHealth, LagMeasurement, PublicationStats
from serving_layer.keys.key import Key
from serving_layer.responses.publications import (
    CorrectionTotals,
    RecomputeProblem,
    RecomputeProgress,
    RecomputeReport,
)
from serving_layer.tables.alerts import AlertTables
from serving_layer.tables.async_session import AsyncSession, Row, day_of, instant_of, optional_instant
from views.control.publication import SERIES
from views.control.recompute import RecomputeRequest

Model = TypeVar("Model")

MOST_ALARM_EVENTS = 1000
"""How many events of one alarm are read."""
IDS_AT_ONCE = 500
"""Recomputes in a page of the driver: their plans, which lie beside them, make a page slow to read."""
LEDGERS_BACK = 10
"""How many publications are searched for their ledgers: one is written soon after its publication."""
_KEY_COLUMNS = "id, digest, tenant, scopes, name, created_at, expires_at, revoked_at"
_API_KEYS: Purpose = "api keys"
_LONGEST_ID = 100
"""Characters of the id of a key that is looked up. Cassandra refuses empty and very long ones."""
_BLOCKS = "SELECT store, day, block FROM corrections WHERE subject = ? AND view_name = ?"


class LedgerTables:
    """Implements `LedgerReader` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._ledger = session.prepare("SELECT lines, base, written_at, totals FROM ledgers WHERE subject = ?")
        self._all = session.prepare(f"{_BLOCKS} AND (store, day) >= (?, ?) LIMIT ?")
        self._of_store = session.prepare(f"{_BLOCKS} AND store = ? AND day >= ? LIMIT ?")

    async def ledger(self, subject: str) -> Ledger | None:
        """Its row comes last, when all of its blocks are written."""
        for lines, base, written_at, totals in await self._session.rows(self._ledger, subject):
            return Ledger(subject, lines or subject, base, instant_of(written_at), orjson.loads(totals or "{}"))
        return None

    async def ledger_blocks(
        self, lines: str, view: str, store: str | None, start: BlockKey, limit: int
    ) -> Sequence[LedgerBlock]:
        """By store and day, as the table is sorted."""
        statement = self._all if store is None else self._of_store
        rows = await self._session.rows(statement, lines, view, *start, limit)
        return [LedgerBlock(of, day_of(day), block) for of, day, block in rows]


class _ShortReport(msgspec.Struct):
    """What a list says of a report, which may name ten thousand partitions."""

    days: int | msgspec.UnsetType = msgspec.UNSET
    corrections: CorrectionTotals | msgspec.UnsetType | None = msgspec.UNSET


class RecomputeTables:
    """Implements `RecomputeReader` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._one = session.prepare(
            "SELECT state, asked, asked_by, why, asked_at, updated_at, ended_at, progress, publication, problem, "
            "report FROM recomputes WHERE id = ?"
        )
        self._ids = session.prepare("SELECT id, asked_at FROM recomputes")
        self._ids.fetch_size = IDS_AT_ONCE

    async def recompute(self, id_: str) -> RecomputeRecord | None:
        """None for a row without a request: something wrote to an id that was never requested."""
        return await self._read(id_, RecomputeReport)

    async def newest(self, limit: int) -> Sequence[RecomputeRecord]:
        """Reads the ids and instants of all, some ten thousand a year, and the rest of the newest ones only."""
        asked = ((at, id_) for id_, at in await self._session.rows(self._ids) if at is not None)
        ids = [id_ for _, id_ in heapq.nlargest(limit, asked)]
        found = await asyncio.gather(*(self._read(id_, _ShortReport) for id_ in ids))
        return [record for record in found if record]

    async def _read(self, id_: str, report_type: "type[RecomputeReport | _ShortReport]") -> RecomputeRecord | None:
        rows = await self._session.rows(self._one, id_)
        if not rows or rows[0][1] is None:
            return None
        state, request, by, why, asked_at, updated_at, ended_at, progress, number, problem, report = rows[0]
        said = _decoded(report, report_type)
        return RecomputeRecord(
            id_,
            state or "asked",
            RecomputeRequest.from_json(request),
            by or "",
            why or "",
            optional_instant(asked_at),
            optional_instant(updated_at),
            optional_instant(ended_at),
            _decoded(progress, RecomputeProgress),
            number,
            _decoded(problem, RecomputeProblem),
            RecomputeReport(days=said.days, corrections=said.corrections) if isinstance(said, _ShortReport) else said,
        )


def _decoded(text: str | None, what: type[Model]) -> Model | None:
    return msgspec.json.decode(text, type=what) if text else None


class KeyTables:
    """KeyReader, and what the command line changes. Each row is signed as it is written."""

    def __init__(self, session: AsyncSession, secrets_key: SecretsKey) -> None:
        """Prepares its statements."""
        self._session, self._secrets_key = session, secrets_key
        self._select = session.prepare(f"SELECT {_KEY_COLUMNS}, mac FROM api_keys")  # noqa: S608 - names of columns
        self._one = session.prepare(f"SELECT {_KEY_COLUMNS}, mac FROM api_keys WHERE id = ?")  # noqa: S608 - likewise
        self._insert = session.prepare(
            f"INSERT INTO api_keys ({_KEY_COLUMNS}, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - likewise
        )
        self._update = session.prepare(
            "UPDATE api_keys SET expires_at = ?, revoked_at = ?, mac = ? WHERE id = ? "
            "IF digest = ? AND expires_at = ? AND revoked_at = ?"
        )

    async def keys(self) -> Sequence[Key]:
        """All of them, also those that are not signed; there are hundreds, not millions."""
        return [self._key(row) for row in await self._session.rows(self._select) if _is_whole(row)]

    async def keep(self, key: Key) -> None:
        """Write a new key, and sign it.

        Raises:
            CassandraUnavailableError: as `AsyncSession.rows`; or the row is not what was written, because somebody else
                has written it with a later timestamp.
        """
        values = (key.id, key.digest, key.tenant, set(key.scopes), key.name, key.created_at)
        await self._session.rows(self._insert, *values, key.expires_at, key.revoked_at, self._mac(key))
        if not _says(await self._read(key.id), key):
            raise _not_written(key)

    async def end(self, id_: str, how: Callable[[Key], Key]) -> Key:
        """Change when a key ends, and sign it. What somebody else changes at the same time is not undone.

        Args:
            id_: of the key.
            how: the key as it should be, from what it is; called again if it was changed in the meantime.

        Returns:
            The key as it is now.

        Raises:
            UnknownNameError: there is no such key.
            CassandraUnavailableError: as `keep`.
        """
        read = await self._read(id_)
        while read is not None:
            wanted = how(read)
            ends = (wanted.expires_at, wanted.revoked_at, self._mac(wanted))
            await self._session.rows(self._update, *ends, id_, read.digest, read.expires_at, read.revoked_at)
            found = await self._read(id_)
            if found is not None and _says(found, wanted):
                return found
            if found == read:
                raise _not_written(read)
            read = found
        raise UnknownNameError("key", id_, [each.id for each in await self.keys()])

    async def _read(self, id_: str) -> Key | None:
        if not id_ or len(id_) > _LONGEST_ID:
            return None
        rows = await self._session.rows(self._one, id_)
        return next((self._key(row) for row in rows if _is_whole(row)), None)

    def _key(self, row: Row) -> Key:
        id_, digest, tenant, scopes, name, created, expires, revoked, mac = row
        ends = (optional_instant(expires), optional_instant(revoked))
        key = Key(id_, digest, tenant, frozenset(scopes or ()), name or "", instant_of(created), *ends)
        return replace(key, is_signed=self._secrets_key.has_signed(mac, _API_KEYS, *key.signed_parts))

    def _mac(self, key: Key) -> bytes:
        return self._secrets_key.sign(_API_KEYS, *key.signed_parts)


def _says(found: Key | None, written: Key) -> bool:
    """Whether a row says what was written; of a key that was to end, that somebody else has ended it is as good."""
    if found is None or not found.is_signed:
        return False
    is_revoked = found.revoked_at is not None and written.revoked_at is not None
    return is_revoked or found.signed_parts == written.signed_parts


def _not_written(key: Key) -> CassandraUnavailableError:
    message = f"The row of the key `{key.id}` is not what was just written."
    do = "Compare the clocks and try again; see docs/how-to/keys.md#a-row-that-cannot-be-changed"
    return CassandraUnavailableError(message, do=do)


def _is_whole(row: Row) -> bool:
    """Whether it can be a key. A row that somebody else has begun must not keep others from being read."""
    _, digest, tenant, _, _, created, *_ = row
    return None not in (digest, tenant, created)


class WatchTables:
    """Implements `WatchReader` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._ledgers, self._alerts = LedgerTables(session), AlertTables(session)
        self._lag = session.prepare(
            "SELECT topic, partition, position, end_offset, records, oldest_at, moved_at, measured_at "
            "FROM lag WHERE reader = ?"
        )
        self._noticed = session.prepare(
            "SELECT noticed_at, place, detail FROM alarms WHERE name = ? AND noticed_at > ? LIMIT ?"
        )
        self._found = session.prepare(
            "SELECT published_at, stats FROM publications WHERE series = ? AND publication = ?"
        )
        self._audited = session.prepare("SELECT publication FROM alert_audits WHERE series = ?")
        self._hooks = session.prepare("SELECT id, url, created_at, suspended_at, removed_at FROM webhook_endpoints")
        self._hook_states = session.prepare("SELECT id, failing_since, seen_at, refusing_since FROM webhook_states")

    async def lag(self, reader: str) -> Sequence[LagMeasurement]:
        """The lag that a reader measured, per topic and partition."""
        return [
            LagMeasurement(reader, topic, number, at, end, records, optional_instant(oldest), *map(instant_of, times))
            for topic, number, at, end, records, oldest, *times in await self._session.rows(self._lag, reader)
        ]

    async def noticed(self, name: str, after: datetime) -> Sequence[AlarmEvent]:
        """Oldest first, as the table is sorted."""
        rows = await self._session.rows(self._noticed, name, after, MOST_ALARM_EVENTS)
        return [AlarmEvent(instant_of(at), place, detail) for at, place, detail in rows]

    async def endpoints(self) -> Sequence[EndpointHealth]:
        """The state of the webhooks of all tenants."""
        states = {id_: times for id_, *times in await self._session.rows(self._hook_states)}
        return [
            EndpointHealth(
                instant_of(made),
                optional_instant(suspended),
                *map(optional_instant, states.get(id_, (None, None, None))),
            )
            for id_, url, made, suspended, removed in await self._session.rows(self._hooks)
            if url is not None and removed is None
        ]

    async def alerts(self) -> HistoryCoverage:
        """How far the alert history goes, over all partitions."""
        return await self._alerts.kept()

    async def alerts_looked_at(self) -> int:
        """The publication that alerts were compared with last; 0 for none."""
        return max([int(number) for (number,) in await self._session.rows(self._audited, SERIES)], default=0)

    async def publication(self, number: int) -> PublicationStats:
        """Nothing is known of one that is not there."""
        for published_at, stats in await self._session.rows(self._found, SERIES, number):
            return PublicationStats(optional_instant(published_at), orjson.loads(stats or "{}"))
        return PublicationStats(None, {})

    async def ledgers(self, number: int) -> Sequence[Ledger]:
        """The ledgers of the last ten publications."""
        subjects = map(str, range(number, max(0, number - LEDGERS_BACK), -1))
        found = await asyncio.gather(*map(self._ledgers.ledger, subjects))
        return [ledger for ledger in found if ledger]
