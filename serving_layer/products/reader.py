"""Reads product masters. Only the buckets that a request needs are loaded; blocks are cached by (tenant, version)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from cachetools import LRUCache

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.products import (
    Product,
    ProductMaster,
    Versions,
    bucket_of,
    bucket_of_seen,
    decode_block,
    in_category,
)
from serving_layer.caching import keep

REFRESH_SECONDS = 1.0
"""After this time, the version of a product master is read again."""
CACHED_PRODUCTS = 250_000
"""Products that one process keeps, over all tenants."""
MOST_TENANTS = 10_000
MOST_NAMED = 64
"""Product masters of which the names are kept."""
BLOCKS_AT_ONCE = 16
SEEN_TOGETHER = 100
"""SKUs of which one read asks for the titles that receipts have."""
BLOCKS_PER_PAGE = 64
"""How many blocks one page of a filtered list may search."""

Block = Mapping[str, Versions]
Found = TypeVar("Found")


class ProductPlace(NamedTuple):
    """Where a page of one version of the products ends. SKUs are sorted within their bucket."""

    version: str
    bucket: int
    sku: str


class ProductFilter(NamedTuple):
    """Which products are listed: of a category or one below it, and with a text in SKU, title, brand or GTIN."""

    category: tuple[str, ...] = ()
    search: str = ""

    def includes(self, product: Product) -> bool:
        """Return whether the product matches; letters match whatever their case."""
        text = self.search.casefold()
        fields = (product.sku, product.title, product.brand, product.gtin)
        return in_category(product, self.category) and (not text or any(text in each.casefold() for each in fields))


class ProductPage(NamedTuple):
    """A page of products. `master`: None if none were ever loaded. `following`: None on the last page."""

    master: ProductMaster | None
    products: Sequence[Product]
    following: ProductPlace | None = None


class MasterNames(NamedTuple):
    """The categories of products, as paths such as `Food/Dairy` with all that they are below, and their brands."""

    categories: frozenset[str]
    brands: frozenset[str]

    def includes(self, other: "MasterNames") -> bool:
        """Whether all names of the other are here."""
        return other.categories <= self.categories and other.brands <= self.brands

    def union(self, other: "MasterNames") -> "MasterNames":
        """The names of both."""
        return MasterNames(self.categories | other.categories, self.brands | other.brands)

    @classmethod
    def of(cls, block: Block) -> "MasterNames":
        """The names in a block, of all versions of its products."""
        paths = {product.category for versions in block.values() for product in versions}
        categories = {"/".join(path[:levels]) for path in paths for levels in range(1, len(path) + 1)}
        brands = {product.brand for versions in block.values() for product in versions if product.brand}
        return cls(frozenset(categories), frozenset(brands))


class ProductBlocks(Protocol):
    """Where products are stored. Every method raises CassandraUnavailableError."""

    async def master(self, tenant: str) -> ProductMaster | None:
        """The current version; None if none was loaded."""

    async def block(self, tenant: str, version: str, bucket: int) -> bytes | None:
        """A block; None if the version was removed."""

    async def seen_titles(self, tenant: str, bucket: int, skus: Sequence[str]) -> Mapping[str, str]:
        """The titles that receipts last had for SKUs of one bucket (`bucket_of_seen`), as far as there are any."""


class _VersionRemovedError(Exception):
    """The version was replaced twice while it was read."""


class ProductReader:
    """The products of all tenants. Belongs to one event loop. Every method raises CassandraUnavailableError."""

    def __init__(self, blocks: ProductBlocks, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._blocks, self._clock = blocks, clock
        self._masters: LRUCache[str, tuple[float, ProductMaster | None]] = LRUCache(MOST_TENANTS)
        self._cache: LRUCache[tuple[str, str, int], Block] = LRUCache(
            CACHED_PRODUCTS, getsizeof=lambda block: max(1, len(block))
        )
        self._names: LRUCache[tuple[str, str], MasterNames] = LRUCache(MOST_NAMED)
        self._at_once = asyncio.Semaphore(BLOCKS_AT_ONCE)

    async def master(self, tenant: str, *, fresh: bool = False) -> ProductMaster | None:
        """The current version of a tenant's products, at most `REFRESH_SECONDS` old; None if none was loaded.

        `fresh`: it is read after this call began.
        """
        known = None if fresh else self._masters.get(tenant)
        if known is None or self._clock() - known[0] >= REFRESH_SECONDS:
            began = self._clock()
            known = self._masters[tenant] = began, await self._blocks.master(tenant)
        return known[1]

    async def products(self, tenant: str, skus: Iterable[str]) -> Mapping[str, Versions]:
        """The versions of these SKUs, oldest first, without those that the product master lacks."""
        chosen = set(skus)
        return await self._with_master(tenant, lambda master: self._chosen(master, chosen), {})

    async def versions(self, master: ProductMaster, skus: Iterable[str]) -> Mapping[str, Versions]:
        """The versions of these SKUs in exactly this version of a product master, otherwise as `products`."""
        try:
            return await self._chosen(master, set(skus))
        except _VersionRemovedError as error:
            raise self._replaced(master.tenant) from error

    async def seen_titles(self, tenant: str, skus: Iterable[str]) -> Mapping[str, str]:
        """The titles that receipts of a tenant last had for SKUs, without those that no receipt has.

        They are not part of a version: a receipt that the speed layer reads later may change them.
        """
        buckets: dict[int, list[str]] = {}
        for sku in sorted(set(skus)):
            buckets.setdefault(bucket_of_seen(sku), []).append(sku)
        parts = [
            (bucket, own[start : start + SEEN_TOGETHER])
            for bucket, own in buckets.items()
            for start in range(0, len(own), SEEN_TOGETHER)
        ]
        found = await asyncio.gather(*(self._seen(tenant, *part) for part in parts))
        return {sku: title for part in found for sku, title in part.items()}

    async def _seen(self, tenant: str, bucket: int, skus: Sequence[str]) -> Mapping[str, str]:
        async with self._at_once:
            return await self._blocks.seen_titles(tenant, bucket, skus)

    async def names(self, master: ProductMaster, wanted: MasterNames) -> MasterNames:
        """Categories and brands in this version of a product master: all, or some that include those wanted.

        It searches the blocks until they are found, which is soon for a name that many products have.
        """
        place = master.tenant, master.version
        known = self._names.get(place)
        if known is not None:
            return known
        categories: set[str] = set()
        brands: set[str] = set()
        try:
            for bucket in range(master.buckets):
                found = MasterNames.of(await self._block(master, bucket))
                categories |= found.categories
                brands |= found.brands
                if wanted.categories <= categories and wanted.brands <= brands:
                    return MasterNames(frozenset(categories), frozenset(brands))
                await asyncio.sleep(0)  # as in `_page`
        except _VersionRemovedError as error:
            raise self._replaced(master.tenant) from error
        known = self._names[place] = MasterNames(frozenset(categories), frozenset(brands))
        return known

    async def page(
        self, tenant: str, chosen: ProductFilter, limit: int, after: ProductPlace | None = None
    ) -> ProductPage:
        """A page of products, each version of its own, by bucket and SKU.

        All versions of a SKU are on one page, so it may hold a few more than `limit`. It holds fewer where
        `BLOCKS_PER_PAGE` blocks have been searched; more may follow even if it is empty.
        """
        return await self._with_master(
            tenant, lambda master: self._page(master, chosen, limit, after), ProductPage(None, ())
        )

    async def page_of(
        self, master: ProductMaster, chosen: ProductFilter, limit: int, after: ProductPlace | None = None
    ) -> ProductPage:
        """As `page`, of exactly this version of a product master."""
        try:
            return await self._page(master, chosen, limit, after)
        except _VersionRemovedError as error:
            raise self._replaced(master.tenant) from error

    async def _with_master(
        self, tenant: str, read: Callable[[ProductMaster], Awaitable[Found]], nothing: Found
    ) -> Found:
        """Read from the current version; once more from a newer one if it was removed meanwhile."""
        for _ in range(2):
            master = await self.master(tenant)
            if master is None:
                return nothing
            try:
                return await read(master)
            except _VersionRemovedError:
                self._masters.pop(tenant, None)
        raise self._replaced(tenant)

    def _replaced(self, tenant: str) -> CassandraUnavailableError:
        self._masters.pop(tenant, None)
        message = f"The products of tenant `{tenant}` were replaced several times while they were read."
        return CassandraUnavailableError(message, do="Try again.")

    async def _chosen(self, master: ProductMaster, skus: set[str]) -> Mapping[str, Versions]:
        buckets: dict[int, list[str]] = {}
        for sku in skus:
            buckets.setdefault(bucket_of(sku, master.buckets), []).append(sku)
        blocks = await asyncio.gather(*(self._block(master, bucket) for bucket in buckets))
        return {
            sku: block[sku]
            for block, names in zip(blocks, buckets.values(), strict=True)
            for sku in names
            if sku in block
        }

    async def _page(
        self, master: ProductMaster, chosen: ProductFilter, limit: int, after: ProductPlace | None
    ) -> ProductPage:
        found: list[Product] = []
        place = after
        first = after.bucket if after else 0
        last = min(master.buckets, first + BLOCKS_PER_PAGE)
        for bucket in range(first, last):
            block = await self._block(master, bucket)
            for sku in sorted(block):
                if after and bucket == after.bucket and sku <= after.sku:
                    continue
                if len(found) >= limit:
                    return ProductPage(master, found, place)
                found += [product for product in block[sku] if chosen.includes(product)]
                place = ProductPlace(master.version, bucket, sku)
            await asyncio.sleep(0)  # other requests have their turn between blocks that are cached
        return ProductPage(master, found, ProductPlace(master.version, last, "") if last < master.buckets else None)

    async def _block(self, master: ProductMaster, bucket: int) -> Block:
        key = master.tenant, master.version, bucket
        block = self._cache.get(key)
        if block is None:
            async with self._at_once:
                packed = await self._blocks.block(*key)
            if packed is None:
                raise _VersionRemovedError
            block = decode_block(packed)
            keep(self._cache, key, block)
        return block
