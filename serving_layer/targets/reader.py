"""Reads targets. Only the blocks of the stores of a request are loaded; they are cached by (tenant, version, store)."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, date
from typing import Protocol

from cachetools import LRUCache

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.targets import StoreTargets, TargetSet, bucket_of, decode_block
from serving_layer.caching import keep
from serving_layer.tables.async_session import AsyncSession

REFRESH_SECONDS = 1.0
"""After this time, the version of a tenant's targets is read again."""
CACHED_TARGETS = 500_000
"""Targets that one process keeps, over all tenants."""
MOST_TENANTS = 10_000
BLOCKS_AT_ONCE = 16


class TargetBlocks(Protocol):
    """Where targets are stored. Every method raises CassandraUnavailableError."""

    async def current(self, tenant: str) -> TargetSet | None:
        """The current version; None if none was loaded."""

    async def block(self, tenant: str, version: str, store: str) -> bytes | None:
        """The block of a store; None if it has no targets, or the version was removed."""


class TargetBlockTables:
    """TargetBlocks in Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._current = session.prepare("SELECT version, count, loaded_at FROM target_sets WHERE tenant = ?")
        self._block = session.prepare(
            "SELECT block FROM target_blocks WHERE tenant = ? AND version = ? AND bucket = ? AND store = ?"
        )

    async def current(self, tenant: str) -> TargetSet | None:
        """The current version; None if none was loaded."""
        for version, count, loaded_at in await self._session.rows(self._current, tenant):
            return TargetSet(tenant, version, count, loaded_at.replace(tzinfo=UTC))
        return None

    async def block(self, tenant: str, version: str, store: str) -> bytes | None:
        """The block of a store; None if it has no targets, or the version was removed."""
        rows = await self._session.rows(self._block, tenant, version, bucket_of(store), store)
        return rows[0][0] if rows else None


class TargetReader:
    """The targets of all tenants. Belongs to one event loop. Every method raises CassandraUnavailableError."""

    def __init__(self, blocks: TargetBlocks, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._blocks, self._clock = blocks, clock
        self._current: LRUCache[str, tuple[float, TargetSet | None]] = LRUCache(MOST_TENANTS)
        self._cache: LRUCache[tuple[str, str, str], StoreTargets] = LRUCache(
            CACHED_TARGETS, getsizeof=lambda targets: 1 + sum(map(len, targets.values()))
        )
        self._at_once = asyncio.Semaphore(BLOCKS_AT_ONCE)

    async def current(self, tenant: str) -> TargetSet | None:
        """The current version of a tenant's targets, at most `REFRESH_SECONDS` old; None if none was loaded."""
        known = self._current.get(tenant)
        if known is None or self._clock() - known[0] >= REFRESH_SECONDS:
            began = self._clock()
            known = self._current[tenant] = began, await self._blocks.current(tenant)
        return known[1]

    async def of_store(self, version: TargetSet, store: str, metric: str) -> Mapping[date, int]:
        """The targets of a store for a metric, in millionths, by business day.

        Raises:
            CassandraUnavailableError: also if the version was replaced several times while it was read.
        """
        key = version.tenant, version.version, store
        targets = self._cache.get(key)
        if targets is None:
            async with self._at_once:
                packed = await self._blocks.block(*key)
                if packed is None and not await self._is_kept(version):
                    message = f"The targets of tenant `{version.tenant}` were replaced while they were read."
                    raise CassandraUnavailableError(message, do="Ask again.")
            targets = {} if packed is None else decode_block(packed)
            keep(self._cache, key, targets)
        return targets.get(metric, {})

    async def _is_kept(self, version: TargetSet) -> bool:
        current = await self._blocks.current(version.tenant)
        return current is not None and current.version == version.version
