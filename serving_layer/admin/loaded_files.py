"""Product masters and targets over REST: load the files that `galatea products` and `galatea targets` load."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from master_dataset.registry import products_file, targets_file
from master_dataset.registry.products import ProductMaster, ProductSpool
from master_dataset.registry.stores import Store
from master_dataset.registry.targets import Targets, TargetSet
from serving_layer.products.reader import ProductReader
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.targets import can_have_targets, target_decimals
from views.core import View
from views.core.metric import Metric


class ProductLoader(Protocol):
    """Makes products part of a tenant's product master; see `ProductTables.load`. Blocks."""

    def load(self, tenant: str, spool: ProductSpool, *, replace: bool) -> ProductMaster:
        """Load all products of the spool or none."""


class TargetLoader(Protocol):
    """Makes targets part of those of a tenant; see `TargetTables.load`. Blocks."""

    def load(self, tenant: str, targets: Targets, *, replace: bool) -> TargetSet:
        """Load all targets or none."""


class TargetTerms(NamedTuple):
    """What targets of a tenant can be of.

    Attributes:
        stores: the stores of the tenant, each with the decimals of its currency.
        metrics: the metrics that can have targets, each with the decimals of a value; None: those of the currency.
    """

    stores: Mapping[str, int]
    metrics: Mapping[str, int | None]

    @classmethod
    def of(
        cls, tenant: str, stores: Iterable[Store], metrics: Iterable[Metric], views: Mapping[str, View]
    ) -> "TargetTerms":
        """The terms of a tenant. `stores`: of all tenants."""
        return cls(
            {store.id: store.currency.digits for store in stores if store.tenant == tenant},
            {metric.id: target_decimals(metric) for metric in metrics if can_have_targets(metric, views)},
        )


class ProductService:
    """Reads and loads product masters. Loads of one process run one after the other, in threads."""

    def __init__(self, reader: ProductReader, loader: ProductLoader) -> None:
        """`loader` is called in a thread."""
        self.reader, self._loader, self._loading = reader, loader, asyncio.Lock()

    async def load(self, tenant: str, body: bytes, *, replace: bool) -> ProductMaster:
        """Load the products of a request body, all or none. Raises BadFileError and ProductsChangedError."""

        def load() -> ProductMaster:
            with ProductSpool() as spool:
                products_file.read_stream(io.BytesIO(body), spool)
                return self._loader.load(tenant, spool, replace=replace)

        async with self._loading:
            return await asyncio.to_thread(load)


class TargetService:
    """Loads targets. Loads of one process run one after the other, in threads."""

    def __init__(
        self,
        loader: TargetLoader,
        stores: Callable[[], Awaitable[tuple[str, Mapping[str, Store]]]],
        catalogue: Catalogue,
    ) -> None:
        """Load nothing yet.

        Args:
            loader: is called in a thread.
            stores: reads the version of the registry, and every store by id.
            catalogue: the registered views and metrics.
        """
        self._loader, self._stores, self._catalogue, self._loading = loader, stores, catalogue, asyncio.Lock()

    async def load(self, tenant: str, body: bytes, *, replace: bool) -> TargetSet:
        """Load the targets of a request body, all or none. Raises BadFileError and TargetsChangedError."""
        async with self._loading:
            _, stores = await self._stores()
            terms = TargetTerms.of(tenant, stores.values(), self._catalogue.metrics.values(), self._catalogue.views)

            def load() -> TargetSet:
                return self._loader.load(tenant, targets_file.read_stream(io.BytesIO(body), *terms), replace=replace)

            return await asyncio.to_thread(load)
