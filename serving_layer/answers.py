"""Answers as they leave: a question in, the bytes of a body out.

A body is remembered while everything that it rests on stands still: publication, generation, speed's positions and the
registry. Speed writes rows first and positions after them, so a body never says less than its `speed_as_of` promises.
"""

from collections.abc import Awaitable, Callable, Hashable
from datetime import UTC, datetime, timedelta

import orjson

from master_dataset.errors import UnknownName
from serving_layer import cells_answer, metric_answer
from serving_layer.as_of import as_of
from serving_layer.basis import Basis, BasisReader
from serving_layer.catalogue import Catalogue
from serving_layer.known_stores import KnownStores
from serving_layer.lru import Lru
from serving_layer.merged_cells import MergedCells
from serving_layer.questions import CellsAsk, MetricAsk, span, understood
from serving_layer.readers import Readers

BODIES_KEPT = 64 * 1024 * 1024
"""Bytes of remembered answers."""


class Answers:
    """One per process and event loop."""

    def __init__(
        self,
        readers: Readers,
        catalogue: Catalogue,
        speed_ttl: timedelta,
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`speed_ttl`: how long speed rows live, by `now`.

        `clock`: monotonic seconds, for how often the registry is asked.
        """
        self.readers = readers
        self.catalogue = catalogue
        self.stores = KnownStores(readers.stores, clock)
        self._basis = BasisReader(readers, speed_ttl, now)
        self._cells = MergedCells(readers, speed_ttl)
        self._bodies: Lru[bytes] = Lru(BODIES_KEPT)

    async def metric(self, ask: MetricAsk, *, by_operator: bool = False) -> bytes:
        """One metric over time, one series per store."""
        basis = await self._basis.read(partial=ask.partial)
        version, _ = await self.stores.all()
        return await self._remembered(
            (ask, by_operator, version, *_moment(basis)), lambda: self._metric(ask, basis, by_operator=by_operator)
        )

    async def cells(self, ask: CellsAsk, *, by_operator: bool = False) -> bytes:
        """The cells of one view with each layer's states."""
        if ask.view not in self.catalogue.views:
            raise UnknownName("view", ask.view, self.catalogue.views)
        basis = await self._basis.read(partial=ask.partial)
        stores = await self.stores.asked(ask.stores, by_operator=by_operator)
        spans = [(store.id, *span(ask.start, ask.end, store.timezone, "15m")) for store in stores]
        return orjson.dumps(await cells_answer.answer(self.catalogue.views[ask.view], spans, basis, self._cells))

    async def as_of(self) -> dict[str, object]:
        """What an answer of now would rest on; without `waiting_for_batch`, which belongs to windows."""
        told = as_of(await self._basis.read(partial=True), 0)
        del told["waiting_for_batch"]
        return told

    async def basis(self) -> Basis:
        """The basis of now, partial if need be."""
        return await self._basis.read(partial=True)

    async def _metric(self, ask: MetricAsk, basis: Basis, *, by_operator: bool) -> dict[str, object]:
        stores = await self.stores.asked(ask.stores, by_operator=by_operator)
        asked = understood(ask, stores, self.catalogue.metrics, self.catalogue.views)
        return await metric_answer.answer(asked, basis, self._cells)

    async def _remembered(self, key: Hashable, make: Callable[[], Awaitable[dict[str, object]]]) -> bytes:
        body = self._bodies.get(key)
        if body is None:
            body = orjson.dumps(await make())
            self._bodies.put(key, body, len(body))
        return body


def _moment(basis: Basis) -> tuple[Hashable, ...]:
    return (basis.pointer.publication, basis.pointer.generation, basis.positions, basis.missing)
