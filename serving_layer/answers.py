"""Answers as they leave: a question in, the bytes of a body out.

A body is remembered while everything that it rests on stands still: publication, generation, speed's positions and the
registry. Speed writes rows first and positions after them, so a body never says less than its `speed_as_of` promises.
Of a publication that was asked for by its number nothing moves, so its bodies are good for as long as it is kept.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import orjson

from master_dataset.errors import UnknownName
from master_dataset.stores import Store
from serving_layer import cells_answer, metric_answer
from serving_layer.as_of import as_of
from serving_layer.basis import Basis, BasisReader, past_basis
from serving_layer.business_days import BusinessDays
from serving_layer.catalogue import Catalogue
from serving_layer.index import answer as index_answer
from serving_layer.index.question import IndexAsk
from serving_layer.known_stores import KnownStores
from serving_layer.lru import Lru
from serving_layer.merged_cells import MergedCells
from serving_layer.questions import CellsAsk, MetricAsk, span, understood
from serving_layer.readers import Readers


class Clocks(NamedTuple):
    """`monotonic`: seconds, for how often the registry is asked. `now`: the time by which speed rows expire."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime]


Ask = TypeVar("Ask", bound=MetricAsk | IndexAsk)
Shops = Sequence[Store]
Told = Awaitable[dict[str, object]]

BODIES_KEPT = 64 * 1024 * 1024
"""Bytes of remembered answers."""


class Answers:
    """One per process and event loop."""

    def __init__(self, readers: Readers, catalogue: Catalogue, speed_ttl: timedelta, clocks: Clocks) -> None:
        """`speed_ttl`: how long speed rows live."""
        self.readers = readers
        self.catalogue = catalogue
        self.stores = KnownStores(readers.stores, clocks.monotonic)
        self._basis = BasisReader(readers, speed_ttl, clocks.now)
        self._cells = MergedCells(readers, speed_ttl)
        self._bodies: Lru[bytes] = Lru(BODIES_KEPT)

    async def metric(self, ask: MetricAsk, *, by_operator: bool = False) -> bytes:
        """One metric over time, one series per store."""
        return await self._remembered(ask, self._metric, by_operator=by_operator)

    async def index(self, ask: IndexAsk, *, by_operator: bool = False) -> bytes:
        """One metric over time beside what a model expected of it, one series per store."""
        return await self._remembered(ask, self._index, by_operator=by_operator)

    async def cells(self, ask: CellsAsk, *, by_operator: bool = False) -> bytes:
        """The cells of one view with each layer's states."""
        if ask.view not in self.catalogue.views:
            raise UnknownName("view", ask.view, self.catalogue.views)
        basis = await self._basis_of(ask)
        stores = await self.stores.asked(ask.stores, by_operator=by_operator)
        days = {store.id: BusinessDays.of(store, store.timezone) for store in stores}
        spans = [(store, *span(ask.start, ask.end, of, "15m")) for store, of in days.items()]
        told = await cells_answer.answer(self.catalogue.views[ask.view], spans, basis, self._cells)
        await self._refuse_collected(basis)
        return orjson.dumps(told)

    async def as_of(self) -> dict[str, object]:
        """What an answer of now would rest on; without `waiting_for_batch`, which belongs to windows."""
        told = as_of(await self._basis.read(partial=True), 0)
        del told["waiting_for_batch"]
        return told

    async def basis(self) -> Basis:
        """The basis of now, partial if need be."""
        return await self._basis.read(partial=True)

    async def _remembered(self, ask: Ask, told: Callable[[Ask, Basis, Shops], Told], *, by_operator: bool) -> bytes:
        basis = await self._basis_of(ask)
        version, _ = await self.stores.all()
        key = (ask, by_operator, version, *_moment(basis))
        body = self._bodies.get(key)
        if body is None:
            stores = await self.stores.asked(ask.stores, by_operator=by_operator)
            body = orjson.dumps(await told(ask, basis, stores))
            await self._refuse_collected(basis)
            self._bodies.put(key, body, len(body))
        return body

    async def _metric(self, ask: MetricAsk, basis: Basis, stores: Shops) -> dict[str, object]:
        asked = understood(ask, stores, self.catalogue.metrics, self.catalogue.views)
        return await metric_answer.answer(asked, basis, self._cells)

    async def _index(self, ask: IndexAsk, basis: Basis, stores: Shops) -> dict[str, object]:
        return await index_answer.answer(ask, stores, self.catalogue, basis, self._cells)

    async def _basis_of(self, ask: MetricAsk | IndexAsk | CellsAsk) -> Basis:
        if ask.as_of is None:
            return await self._basis.read(partial=ask.partial)
        return await past_basis(self.readers.published, ask.as_of)

    async def _refuse_collected(self, basis: Basis) -> None:
        """PublicationCollected if that began while its cells were read: some of them may have been gone."""
        if basis.is_past:
            await past_basis(self.readers.published, basis.pointer.publication)


def _moment(basis: Basis) -> tuple[Hashable, ...]:
    return (basis.pointer.publication, basis.pointer.generation, basis.positions, basis.missing, basis.is_past)
