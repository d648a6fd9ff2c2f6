"""A product master in memory, with the same blocks as in Cassandra."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from master_dataset.registry.products import ProductMaster, ProductSpool, bucket_of_seen, buckets_for, encode_block
from tests.support.rows import WINDOW_SECONDS

if TYPE_CHECKING:
    from tests.support.world import World


class WorldProducts:
    """ProductBlocks and ProductLoader. A load replaces the whole master; `reads`: which buckets were read."""

    def __init__(self, now: Callable[[], datetime], buckets: int = 0, world: "World | None" = None) -> None:
        """`buckets`: how many; 0: as many as a load has. `world`: whose receipts have titles; None: none do."""
        self._now, self._buckets, self._world = now, buckets, world
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

    async def seen_titles(self, tenant: str, bucket: int, skus: Sequence[str]) -> Mapping[str, str]:
        """Of each SKU the greatest title of its latest window, over every delivery."""
        assert {bucket_of_seen(sku) for sku in skus} <= {bucket}
        found: dict[str, tuple[int, bytes]] = {}
        for store, deliveries in self._world.deliveries.items() if self._world else ():
            of = self._world.stores.get(store) if self._world else None
            for event in (each.event for each in deliveries if of and of.tenant == tenant):
                for line in getattr(event.payload, "lines", ()):
                    if line.sku in skus and line.title:
                        seen = (event.happened_ms // 1000 // WINDOW_SECONDS, line.title[:200].encode())
                        found[line.sku] = max(seen, found.get(line.sku, seen))
        return {sku: title.decode() for sku, (_, title) in found.items()}
