"""A product master in memory, with the same blocks as in Cassandra."""

from collections.abc import Callable
from datetime import datetime

from master_dataset.registry.products import ProductMaster, ProductSpool, buckets_for, encode_block


class WorldProducts:
    """ProductBlocks and ProductLoader. A load replaces the whole master; `reads`: which buckets were read."""

    def __init__(self, now: Callable[[], datetime], buckets: int = 0) -> None:
        """`buckets`: how many; 0: as many as a load has."""
        self._now, self._buckets = now, buckets
        self.masters: dict[str, ProductMaster] = {}
        self.blocks: dict[tuple[str, str, int], bytes] = {}
        self.reads: list[int] = []

    def load(self, tenant: str, spool: ProductSpool, *, replace: bool) -> ProductMaster:
        assert replace or tenant not in self.masters, "only Cassandra keeps products of a former load"
        buckets = self._buckets or buckets_for(spool.count)
        version = str(len(self.blocks))
        for bucket, products in spool.by_bucket(buckets):
            self.blocks[tenant, version, bucket] = encode_block(row for rows in products.values() for row in rows)
        self.masters[tenant] = ProductMaster(tenant, version, buckets, spool.count, self._now())
        return self.masters[tenant]

    async def master(self, tenant: str) -> ProductMaster | None:
        return self.masters.get(tenant)

    async def block(self, tenant: str, version: str, bucket: int) -> bytes | None:
        self.reads.append(bucket)
        return self.blocks.get((tenant, version, bucket))
