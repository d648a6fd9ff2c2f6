"""The product master of a tenant in Cassandra: what its SKUs are called, and which categories they are in.

Products lie in buckets by the CRC of their SKU, so a reader loads only the buckets of the SKUs that it needs. They are
loaded in versions (`registry.versions`).
"""

import tempfile
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from master_dataset.errors import BadFileError, ProductsChangedError
from master_dataset.registry.versions import VersionedTables

if TYPE_CHECKING:
    from cassandra.cluster import Session

MOST_PRODUCTS = 1_000_000
"""Of one tenant, each version of a product counted."""
BLOCK_PRODUCTS = 512
"""About how many lie in one block."""
PARTITIONS = 64
"""Parts of a file that is loaded; only one part is in memory at a time."""


class Product(msgspec.Struct, frozen=True, omit_defaults=True):
    """A product as it is called from business day `valid_from` on; None: always. Empty texts: not said.

    `category`: from the department down, such as ("Food", "Dairy", "Milk").
    """

    sku: str
    title: str
    brand: str = ""
    category: tuple[str, ...] = ()
    gtin: str = ""
    valid_from: date | None = None


Versions = tuple[Product, ...]
"""The versions of one product, oldest first."""


def valid_on(versions: Versions, day: date) -> Product | None:
    """Return the version that is valid on a business day; None before the first one."""
    known = bisect_right([each.valid_from or date.min for each in versions], day)
    return versions[known - 1] if known else None


def bucket_of(sku: str, buckets: int) -> int:
    """Return the bucket of a SKU."""
    return zlib.crc32(sku.encode()) % buckets


SEEN_BUCKETS = 64
"""Partitions of a tenant in `seen_titles`: the titles of receipts, which `speed_layer/titles.py` writes."""


def bucket_of_seen(sku: str) -> int:
    """Return the partition of a SKU within its tenant in `seen_titles`."""
    return bucket_of(sku, SEEN_BUCKETS)


def buckets_for(count: int) -> int:
    """Return the number of buckets for so many products: a power of two, so that a larger number splits each bucket."""
    return 1 << max(0, (count - 1) // BLOCK_PRODUCTS).bit_length()


_DECODER = msgspec.json.Decoder(list[Product])


def encode_block(products: Iterable[Product]) -> bytes:
    """Encode the products of a bucket."""
    return zlib.compress(msgspec.json.encode(list(products)), 6)


def decode_block(block: bytes) -> dict[str, Versions]:
    """Decode a block to SKU and versions."""
    found: dict[str, list[Product]] = {}
    for product in _DECODER.decode(zlib.decompress(block)):
        found.setdefault(product.sku, []).append(product)
    return {sku: tuple(versions) for sku, versions in found.items()}


@dataclass(frozen=True)
class ProductMaster:
    """The current version of a tenant's product master."""

    tenant: str
    version: str
    buckets: int
    count: int
    loaded_at: datetime


class ProductSpool:
    """Products that were read and validated, in temporary files by the CRC of their SKU. Used as a context.

    Memory holds one of `PARTITIONS` parts at a time, whatever the size of what is loaded.
    """

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._folder = tempfile.TemporaryDirectory(prefix="galatea-products-")
        self._files: dict[int, IO[bytes]] = {}
        self.count = 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the files."""
        for file in self._files.values():
            file.close()
        self._folder.cleanup()

    def add(self, line: int, product: Product) -> None:
        """Add the product of a line. BadFileError if there are more than `MOST_PRODUCTS`."""
        self.count += 1
        if self.count > MOST_PRODUCTS:
            message = f"There are more than {MOST_PRODUCTS:,} products."
            raise BadFileError(message, do="Leave out products that are sold no more.", code="too_many_products")
        part = bucket_of(product.sku, PARTITIONS)
        if part not in self._files:
            self._files[part] = (Path(self._folder.name) / str(part)).open("w+b")
        self._files[part].write(msgspec.json.encode((line, product)) + b"\n")

    def by_bucket(self, buckets: int) -> Iterator[tuple[int, dict[str, Versions]]]:
        """Yield every bucket, also an empty one, with its products by SKU.

        Raises:
            BadFileError: A SKU has two lines with the same `valid_from`.
        """
        parts = min(buckets, PARTITIONS)
        for part in range(parts):
            lines: dict[int, dict[str, dict[date | None, tuple[int, Product]]]] = defaultdict(lambda: defaultdict(dict))
            for number in range(part, PARTITIONS, parts):
                for line, product in self._read(number):
                    versions = lines[bucket_of(product.sku, buckets)][product.sku]
                    if product.valid_from in versions:
                        raise _repeated(product, versions[product.valid_from][0], line)
                    versions[product.valid_from] = line, product
            for bucket in range(part, buckets, parts):
                yield bucket, {sku: _sorted(each.values()) for sku, each in lines[bucket].items()}

    def _read(self, part: int) -> Iterator[tuple[int, Product]]:
        if file := self._files.get(part):
            file.seek(0)
            for row in file:
                yield _ROW.decode(row)


_ROW = msgspec.json.Decoder(tuple[int, Product])


def _sorted(rows: Iterable[tuple[int, Product]]) -> Versions:
    return tuple(sorted((product for _, product in rows), key=lambda each: each.valid_from or date.min))


def _repeated(product: Product, first: int, second: int) -> BadFileError:
    day = f" valid from {product.valid_from}" if product.valid_from else ""
    message = f"Lines {first} and {second} are both SKU `{product.sku}`{day}."
    do = "Remove one of them, or give it another `valid_from`; nothing was loaded."
    return BadFileError(message, do=do, code="duplicate_product")


class ProductTables(VersionedTables):
    """Loads product masters. All methods raise CassandraUnavailableError."""

    kind, versions, counts = "products", "product_masters", ("buckets", "count")
    blocks, partition, changed = "product_blocks", ("tenant", "version"), ProductsChangedError

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        super().__init__(session)
        self._block = session.prepare(
            "SELECT count, block FROM product_blocks WHERE tenant = ? AND version = ? AND bucket = ?"
        )
        self._write = session.prepare(
            "INSERT INTO product_blocks (tenant, version, bucket, count, block) VALUES (?, ?, ?, ?, ?)"
        )
        self._remove = session.prepare("DELETE FROM product_blocks WHERE tenant = ? AND version = ?")

    def load(self, tenant: str, spool: ProductSpool, *, replace: bool) -> ProductMaster:
        """Make the products of a spool part of the tenant's product master, all or none.

        Args:
            tenant: Whose products they are.
            spool: What was read. All versions of a SKU in it replace all former ones of that SKU.
            replace: Remove the SKUs that the spool lacks. Otherwise they stay.

        Returns:
            The new version, which readers see within a second.

        Raises:
            BadFileError: A SKU has two lines with the same `valid_from`, or there would be too many products.
            ProductsChangedError: Another load was faster.
        """

        def stage(version: str, before: Any) -> Sequence[int]:  # noqa: ANN401 - a row of the driver
            kept = None if replace or before is None else _master(tenant, before)
            buckets = max(buckets_for(spool.count), kept.buckets if kept else 1)
            return buckets, self._stage(tenant, version, buckets, spool, kept)

        loaded = self.load_version(tenant, stage)
        buckets, count = loaded.counts
        return ProductMaster(tenant, loaded.version, buckets, count, loaded.loaded_at)

    def remove_version(self, tenant: str, version: str) -> None:
        """Delete all blocks of a version."""
        self._session.execute(self._remove, (tenant, version))

    def _stage(self, tenant: str, version: str, buckets: int, spool: ProductSpool, kept: ProductMaster | None) -> int:
        """Write the blocks of a new version, and count its products."""
        total = 0
        for bucket, products in spool.by_bucket(buckets):
            block, count = self._merged(bucket, buckets, products, kept)
            total += count
            if total > MOST_PRODUCTS:
                message = f"The tenant would have more than {MOST_PRODUCTS:,} products."
                raise BadFileError(message, do="Replace all products instead.", code="too_many_products")
            self._session.execute(self._write, (tenant, version, bucket, count, block))
        return total

    def _merged(
        self, bucket: int, buckets: int, products: Mapping[str, Versions], kept: ProductMaster | None
    ) -> tuple[bytes, int]:
        """The block of a bucket: its new products and those that are kept. A block that does not change is copied."""
        merged = dict(products)
        if kept:
            old = self._session.execute(self._block, (kept.tenant, kept.version, bucket % kept.buckets)).one()
            if old is None:  # removed since: the load that replaced it has switched
                raise self.overtaken(kept.tenant)
            if not products and buckets == kept.buckets:
                return old.block, old.count
            former = decode_block(old.block)
            merged = {sku: each for sku, each in former.items() if bucket_of(sku, buckets) == bucket} | merged
        rows = [product for sku in sorted(merged) for product in merged[sku]]
        return encode_block(rows), len(rows)


def _master(tenant: str, row: Any) -> ProductMaster:  # noqa: ANN401 - a row of the driver
    return ProductMaster(tenant, row.version, row.buckets, row.count, row.loaded_at.replace(tzinfo=UTC))


def in_category(product: Product, category: Sequence[str]) -> bool:
    """Return whether the product is in the category, given from the department down, or in one below it."""
    return product.category[: len(category)] == tuple(category)
