"""Targets over REST: load new ones, as `galatea targets load` does."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from master_dataset.registry.stores import Store
from master_dataset.registry.targets import Targets, TargetSet
from master_dataset.registry.targets_file import read_stream
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.targets import can_have_targets, target_decimals
from views.core import View
from views.core.metric import Metric


class TargetLoader(Protocol):
    """Makes targets part of those of a tenant; see `TargetTables.load`."""

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


class TargetService:
    """Loads targets. Loads of one process run one after the other."""

    def __init__(
        self,
        loader: TargetLoader,
        stores: Callable[[], Awaitable[tuple[str, Mapping[str, Store]]]],
        catalogue: Catalogue,
    ) -> None:
        """Load nothing yet.

        Args:
            loader: blocks: it is called in a thread.
            stores: reads the version of the registry, and every store by id.
            catalogue: the registered views and metrics.
        """
        self._loader, self._stores, self._catalogue = loader, stores, catalogue
        self._loading = asyncio.Lock()

    async def load(self, tenant: str, body: bytes, *, replace: bool) -> TargetSet:
        """Load the targets of a request body, all or none. Raises BadFileError and TargetsChangedError."""
        async with self._loading:
            _, stores = await self._stores()
            terms = TargetTerms.of(tenant, stores.values(), self._catalogue.metrics.values(), self._catalogue.views)
            return await asyncio.to_thread(self._load, tenant, body, terms, replace=replace)

    def _load(self, tenant: str, body: bytes, terms: TargetTerms, *, replace: bool) -> TargetSet:
        return self._loader.load(tenant, read_stream(io.BytesIO(body), *terms), replace=replace)
