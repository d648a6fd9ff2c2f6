"""The tables of product masters and targets in Cassandra."""

from collections.abc import Mapping, Sequence
from datetime import UTC

from master_dataset.registry.products import ProductMaster
from master_dataset.registry.targets import TargetSet, bucket_of
from serving_layer.tables.async_session import AsyncSession


class ProductBlockTables:
    """Implements `ProductBlocks` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._master = session.prepare(
            "SELECT version, buckets, count, loaded_at FROM product_masters WHERE tenant = ?"
        )
        self._block = session.prepare(
            "SELECT block FROM product_blocks WHERE tenant = ? AND version = ? AND bucket = ?"
        )
        self._seen = session.prepare("SELECT sku, title FROM seen_titles WHERE tenant = ? AND bucket = ? AND sku IN ?")

    async def master(self, tenant: str) -> ProductMaster | None:
        """The current version; None if none was loaded."""
        for version, buckets, count, loaded_at in await self._session.rows(self._master, tenant):
            return ProductMaster(tenant, version, buckets, count, loaded_at.replace(tzinfo=UTC))
        return None

    async def block(self, tenant: str, version: str, bucket: int) -> bytes | None:
        """A block; None if the version was removed."""
        rows = await self._session.rows(self._block, tenant, version, bucket)
        return rows[0][0] if rows else None

    async def seen_titles(self, tenant: str, bucket: int, skus: Sequence[str]) -> Mapping[str, str]:
        """The titles that receipts last had for SKUs of one bucket, as far as there are any."""
        return dict(await self._session.rows(self._seen, tenant, bucket, list(skus)))


class TargetBlockTables:
    """Implements `TargetBlocks` with Cassandra."""

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
