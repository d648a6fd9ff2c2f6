"""Answers as they leave: a question in, the bytes of a body out.

A body is remembered while everything that it rests on stands still: publication, generation, speed's positions and the
registry. Speed writes rows first and positions after them, so a body never says less than its `speed_as_of` promises.
Of a publication that was asked for by its number nothing moves, so its bodies are good for as long as it is kept.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from master_dataset.errors import UnknownNameError
from serving_layer.caching import BodyCache
from serving_layer.errors import TooManyStoresError
from serving_layer.index import answer as index_answer
from serving_layer.index.request import IndexRequest
from serving_layer.keys.key import Caller
from serving_layer.query import cells as cells_answer
from serving_layer.query import metrics_answer
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.metrics_answer import MetricsRequest
from serving_layer.query.questions import CellsRequest, MetricRequest, resolve, span
from serving_layer.query.snapshot import ReadSnapshot, ReadVersion, SnapshotReader, past_snapshot, provenance
from serving_layer.query.stores import MOST_STORES, KnownStores, StorePage, write_token
from serving_layer.query.timeline import zone_named
from serving_layer.responses.encoding import encode
from serving_layer.responses.metrics import Provenance
from serving_layer.store.cells import MergedCells
from serving_layer.store.readers import Readers
from views.core import View
from views.core.local_time import BusinessDays


class Clocks(NamedTuple):
    """`monotonic`: seconds, for how often the registry is asked. `now`: the time by which speed rows expire."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime]


Ask = MetricsRequest | IndexRequest

BODIES_KEPT = 64 * 1024 * 1024
"""Bytes of remembered answers."""


class QueryService:
    """One per process and event loop."""

    def __init__(
        self, readers: Readers, catalogue: Catalogue, speed_ttl: timedelta, clocks: Clocks, *, recent_seconds: float = 0
    ) -> None:
        """`speed_ttl`: how long speed rows live. `recent_seconds`: how old what an answer rests on may be."""
        self.readers = readers
        self.catalogue = catalogue
        self.stores = KnownStores(readers.stores, clocks.monotonic)
        self._basis = SnapshotReader(
            readers, speed_ttl, clocks.now, recent_seconds=recent_seconds, clock=clocks.monotonic
        )
        self._cells = MergedCells(readers, speed_ttl)
        self._bodies = BodyCache(BODIES_KEPT)

    async def moment(self, ask: MetricRequest | IndexRequest | CellsRequest, *, at_once: bool = False) -> ReadVersion:
        """What the answer to this question will rest on; reads neither cells nor rows. `at_once`: as of this call."""
        basis = await self._basis_of(ask, at_once=at_once)
        version, _ = await self.stores.all()
        return ReadVersion(basis, version)

    async def metrics(self, ask: MetricsRequest, moment: ReadVersion, caller: Caller) -> bytes:
        """One or several metrics over time, one series per store."""

        async def told() -> bytes:
            page = await self.stores.page(ask.one.stores, ask.page, caller)
            _refuse_unseen(ask, page)
            asked = [resolve(each, page.stores, self.catalogue) for each in ask.asks]
            return await metrics_answer.answer(asked, moment.basis, self._cells, _following(ask, page))

        return await self._remembered(ask, moment, told, caller)

    async def index(self, ask: IndexRequest, moment: ReadVersion, caller: Caller) -> bytes:
        """One metric over time beside what a model expected of it, one series per store."""

        async def told() -> bytes:
            stores = await self.stores.asked(ask.stores, caller)
            return encode(await index_answer.answer(ask, stores, self.catalogue, moment.basis, self._cells))

        return await self._remembered(ask, moment, told, caller)

    async def cells(self, ask: CellsRequest, moment: ReadVersion, caller: Caller) -> bytes:
        """The cells of one view with each layer's states."""
        view = self.view(ask)
        stores = await self.stores.asked(ask.stores, caller)
        days = {store.id: BusinessDays.of(store, zone_named(store.timezone)) for store in stores}
        spans = [(store, *span(ask.start, ask.end, of, "15m", self.catalogue.ranges)) for store, of in days.items()]
        told = await cells_answer.answer(view, spans, moment.basis, self._cells)
        await self._refuse_collected(moment.basis)
        return encode(told)

    def view(self, ask: CellsRequest) -> View:
        """The view of a question about cells. UnknownNameError."""
        if ask.view not in self.catalogue.views:
            raise UnknownNameError("view", ask.view, self.catalogue.views)
        return self.catalogue.views[ask.view]

    def look_again(self) -> None:
        """Somebody was told of now: nothing is answered from before it any more."""
        self._basis.look_again()

    async def provenance(self) -> Provenance:
        """What an answer of now would be computed from."""
        return provenance(await self._basis.read(partial=True))

    async def basis(self) -> ReadSnapshot:
        """The basis of now, partial if need be."""
        return await self._basis.read(partial=True)

    async def _remembered(
        self, ask: Ask, moment: ReadVersion, told: Callable[[], Awaitable[bytes]], caller: Caller
    ) -> bytes:
        async def made() -> bytes:
            body = await told()
            await self._refuse_collected(moment.basis)
            return body

        return await self._bodies.body((ask, caller.sight, moment.mark), made)

    async def _basis_of(self, ask: MetricRequest | IndexRequest | CellsRequest, *, at_once: bool) -> ReadSnapshot:
        if ask.as_of is None:
            return await self._basis.read(partial=ask.partial, at_once=at_once)
        return await past_snapshot(self.readers.published, ask.as_of)

    async def _refuse_collected(self, basis: ReadSnapshot) -> None:
        """PublicationCollectedError if that began while its cells were read: some of them may have been gone."""
        if basis.is_past:
            await past_snapshot(self.readers.published, basis.pointer.publication)


def _refuse_unseen(ask: MetricsRequest, page: StorePage) -> None:
    """TooManyStoresError where a file would hold some of the stores, and nobody would see that there are more."""
    if ask.is_table and page.following is not None and not ask.page.is_asked:
        message = f"More stores are registered than the {MOST_STORES} of one table."
        do = f"Ask in pages: `limit={MOST_STORES}`, then `after=` with what the header `Galatea-Next` says."
        raise TooManyStoresError(message, do=do)


def _following(ask: MetricsRequest, page: StorePage) -> str | UnsetType | None:
    """`next`, where there is more, or pages were asked for."""
    if page.following is None and not ask.page.is_asked:
        return UNSET
    return None if page.following is None else write_token(page.following)
