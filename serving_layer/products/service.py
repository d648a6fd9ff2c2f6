"""Product masters over REST: list them, and load new ones."""

import asyncio
import io
from typing import Protocol

from master_dataset.registry.products import ProductMaster, ProductSpool
from master_dataset.registry.products_file import read_stream
from serving_layer.products.reader import ProductReader


class ProductLoader(Protocol):
    """Makes products part of a tenant's product master; see `ProductTables.load`."""

    def load(self, tenant: str, spool: ProductSpool, *, replace: bool) -> ProductMaster:
        """Load all products of the spool or none."""


class ProductService:
    """Reads and loads product masters. Loads of one process run one after the other."""

    def __init__(self, reader: ProductReader, loader: ProductLoader) -> None:
        """`loader` blocks: it is called in a thread."""
        self.reader, self._loader = reader, loader
        self._loading = asyncio.Lock()

    async def load(self, tenant: str, body: bytes, *, replace: bool) -> ProductMaster:
        """Load the products of a request body, all or none. Raises BadFileError and ProductsChangedError."""
        async with self._loading:
            return await asyncio.to_thread(self._load, tenant, body, replace=replace)

    def _load(self, tenant: str, body: bytes, *, replace: bool) -> ProductMaster:
        with ProductSpool() as spool:
            read_stream(io.BytesIO(body), spool)
            return self._loader.load(tenant, spool, replace=replace)
