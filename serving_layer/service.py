"""The query service: a request in, the JSON of its answer out. What REST, pages and live updates have in common.

It reads the snapshot, runs the stages of `answer`, and keeps the bodies (docs/explanation/caching.md). The speed layer
writes rows first and positions after them, so a body never contains less than its `speed_as_of` promises.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import NamedTuple

import structlog
from cachetools import LRUCache
from msgspec import UNSET, UnsetType

from master_dataset import tracing
from master_dataset.errors import CassandraUnavailableError, GalateaError, UnknownNameError
from master_dataset.registry.products import ProductMaster
from master_dataset.registry.stores import Store
from master_dataset.registry.targets import TargetSet
from serving_layer.caching import SharedCache, digest
from serving_layer.errors import BadQuestionError, TooManyStoresError, not_offered
from serving_layer.fair_semaphore import BoundedFairSemaphore, FairSemaphore
from serving_layer.index import answer as index_answer
from serving_layer.index.request import IndexRequest
from serving_layer.keys.key import Caller
from serving_layer.products.attribution import AnswerProducts
from serving_layer.products.reader import ProductReader
from serving_layer.query import sensor_health
from serving_layer.query.answer import answer
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.cells import CellsRequest, answer_cells
from serving_layer.query.ranges import AskedRange, latest_day_start
from serving_layer.query.resolve import MetricRequest, MetricsRequest, query_span, split_by
from serving_layer.query.sensor_health import SensorsRequest
from serving_layer.query.stores import (
    MOST_STORES,
    MOST_STORES_MERGED,
    KnownStores,
    StorePage,
    unregistered,
    write_token,
)
from serving_layer.query.targets import AnswerTargets, TargetReader
from serving_layer.responses.encoding import encode
from serving_layer.responses.metrics import Provenance
from serving_layer.store.at_least import AtLeast, Demand
from serving_layer.store.cells import MergedCells
from serving_layer.store.readers import RawReceiptPage, Readers, ReceiptPlace
from serving_layer.store.snapshot import (
    ReadSnapshot,
    ReadVersion,
    SnapshotReader,
    VisibleSpeed,
    past_snapshot,
    provenance,
)
from serving_layer.timeline import zone_named
from views.core import View
from views.core.local_time import BusinessDays, round_down

Request = MetricRequest | IndexRequest | CellsRequest | SensorsRequest

DAY_STARTS_KEPT = 1024
BODIES_KEPT, BODY_OVERHEAD = 64 * 1024 * 1024, 500
"""Bytes of cached bodies, and what each one counts beside its own."""
LONG_AT_ONCE, LONG_OF_TENANT = 4, 2
"""How many long answers are computed at once, and of one tenant: all share a processor with the short ones."""
RECEIPTS_AT_ONCE = 2
"""How many pages of receipts are read at once, and of one tenant a single one: for each, Cassandra reads all receipts
of a store in an hour, and each of them may have a megabyte."""
LONG_ASKED = 64
"""The most long answers of a tenant in progress or waiting, including those whose client has left; likewise pages of
receipts."""
RECENT_SECONDS = 0.05
"""Greatest age of the state that a query is answered from, but where REST is asked with `Cache-Control: no-cache`."""

log = structlog.get_logger()


class Clocks(NamedTuple):
    """`monotonic`: seconds, for how old things are. `now`: by which speed rows expire. `sleep`: for so many seconds."""

    monotonic: Callable[[], float]
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class QueryService:
    """Answers requests. One per process and event loop."""

    def __init__(  # noqa: PLR0913 - what it answers from
        self,
        readers: Readers,
        catalogue: Catalogue,
        products: ProductReader,
        speed_ttl: timedelta,
        clocks: Clocks,
        *,
        recent_seconds: float = 0,
        targets: TargetReader | None = None,
        at_least: AtLeast | None = None,
    ) -> None:
        """Set up the caches; reads nothing.

        Args:
            readers: what serving reads from.
            catalogue: the registered views and metrics.
            products: the product masters of all tenants.
            speed_ttl: how long speed rows live.
            clocks: see `Clocks`.
            recent_seconds: how long before a request its snapshot may have been read.
            targets: the targets of all tenants; None: this process has none.
            at_least: waits for answers that contain certain events; None: this process cannot.
        """
        self.readers = readers
        self.catalogue = catalogue
        self._products = products
        self._targets = targets
        self._at_least = at_least
        self.stores = KnownStores(readers.stores, clocks.monotonic)
        self._snapshots = SnapshotReader(
            readers,
            speed_ttl,
            clocks.now,
            recent_seconds=recent_seconds,
            clock=clocks.monotonic,
            sleep=clocks.sleep,
        )
        self._visible_speed = VisibleSpeed(readers.speed, clocks.monotonic)
        self.merged_cells = MergedCells(readers, speed_ttl)
        self._bodies: SharedCache[str, bytes] = SharedCache(BODIES_KEPT, lambda body: len(body) + BODY_OVERHEAD)
        self._now, self._sleep = clocks.now, clocks.sleep
        self._day_starts: LRUCache[Hashable, int] = LRUCache(DAY_STARTS_KEPT)
        self._long = BoundedFairSemaphore(
            FairSemaphore(LONG_AT_ONCE, LONG_OF_TENANT), LONG_ASKED, "long answers of this tenant"
        )
        self._receipts = BoundedFairSemaphore(
            FairSemaphore(RECEIPTS_AT_ONCE, 1), LONG_ASKED, "pages of receipts of this tenant"
        )
        self._reads_ahead, self._read_ahead_of = False, ""  # the manifest; that of publication 0 is empty
        self._ahead: asyncio.Task[None] | None = None

    def now(self) -> datetime:
        """The current time, by which speed rows expire."""
        return self._now()

    async def read_version(
        self, request: Request, caller: Caller, *, fresh: bool = False, demand: Demand | None = None
    ) -> ReadVersion:
        """Read what the answer to a request will be computed from, but no cells.

        Args:
            request: says whether a publication was named, and whether the speed layer may be missing.
            caller: whose stores are in the answer, and so whose products.
            fresh: read all of it after this call began, whatever was read a moment ago.
            demand: what the answer has to contain; this waits for it.

        Raises:
            NotYetError, BadQuestionError, TooBusyError, BrokerUnavailableError: see `AtLeast.wait`.
            UnknownNameError, PublicationCollectedError: the publication that was named is not there, or not any more.
            SpeedUnavailableError, SpeedExpiredError: the speed layer cannot be read, and the request is not `partial`.
        """
        with tracing.span("read_version"):
            return await self._read_version(request, caller, demand, fresh=fresh)

    async def _read_version(
        self, request: Request, caller: Caller, demand: Demand | None, *, fresh: bool
    ) -> ReadVersion:
        if request.as_of is None:
            read = partial(self._snapshots.read, partial=request.partial)
            snapshot = await read(fresh=fresh)
            if demand is not None:
                again = partial(read, fresh=True)
                snapshot = await self._waits().wait(demand, snapshot, again, self._sleep, caller.tenant)
            self._follow(snapshot)
        else:
            snapshot = await past_snapshot(self.readers.published, request.as_of)
            if demand is not None:
                await self._waits().refuse_lacking(demand, snapshot)
        version, stores = await self.stores.all(fresh=fresh)
        snapshot, failure = await self._seen_by(caller, snapshot, version, stores)
        if failure is not None and not request.partial:
            raise failure
        products = await self._masters(request, stores, caller, fresh=fresh)
        targets = await self._target_sets(request, stores, caller, fresh=fresh)
        return ReadVersion(snapshot, version, self._latest_day_start(request, version, stores), products, targets)

    def _waits(self) -> AtLeast:
        if self._at_least is None:
            raise not_offered("tokens")
        return self._at_least

    async def token(self, version: ReadVersion) -> str:
        """The token of what an answer from this version contains."""
        return (await self._waits().token(version.snapshot)).text()

    async def _masters(
        self, request: Request, stores: Mapping[str, Store], caller: Caller, *, fresh: bool
    ) -> tuple[ProductMaster, ...]:
        """The product masters that the answer reads, by tenant; none if it depends on none."""
        if not isinstance(request, MetricRequest) or not request.reads_products:
            return ()
        read = partial(self._products.master, fresh=fresh)
        masters = await asyncio.gather(*map(read, _tenants(request, stores, caller)))
        return tuple(master for master in masters if master is not None)

    async def _target_sets(
        self, request: Request, stores: Mapping[str, Store], caller: Caller, *, fresh: bool
    ) -> tuple[TargetSet, ...]:
        """The targets that the answer reads, by tenant; none if it reads none."""
        if not isinstance(request, MetricRequest) or not request.reads_targets:
            return ()
        if self._targets is None:
            raise not_offered("targets")
        read = partial(self._targets.current, fresh=fresh)
        found = await asyncio.gather(*map(read, _tenants(request, stores, caller)))
        return tuple(each for each in found if each is not None)

    async def warm_up(self, seconds: float) -> None:
        """Read ahead what answers need most, now and whenever a publication is first seen.

        Afterwards the first request waits no longer than later ones. What cannot be read now is read with the requests.

        Args:
            seconds: how long to wait for it; it goes on in the background.
        """
        self._reads_ahead = True
        try:
            async with asyncio.timeout(seconds):
                self._follow(await self.snapshot())
                if self._ahead is not None:
                    await asyncio.shield(self._ahead)
        except (GalateaError, TimeoutError) as error:
            log.info("answers.not_warm", reason=str(error) or "not done in time")

    def _follow(self, snapshot: ReadSnapshot) -> None:
        """Begin to read a publication ahead when it is first seen, after `warm_up`."""
        manifest = snapshot.pointer.manifest
        is_reading = self._ahead is not None and not self._ahead.done()
        if not self._reads_ahead or manifest == self._read_ahead_of or is_reading:
            return
        self._read_ahead_of = manifest
        published = snapshot.pointer.definitions
        views = [each for each in self.catalogue.views.values() if published.get(each.name) == each.definition_hash]
        self._ahead = asyncio.ensure_future(self._read_ahead(manifest, views))

    async def _read_ahead(self, manifest: str, views: Sequence[View]) -> None:
        try:
            await self.merged_cells.days.read_ahead(manifest, views)
        except GalateaError as error:  # whoever asks for these cells gets the error
            log.info("answers.not_read_ahead", manifest=manifest, reason=error.message)

    async def current_version(
        self, caller: Caller, demand: Demand | None = None
    ) -> tuple[ReadVersion, GalateaError | None]:
        """Read what an answer about the time until now is computed from, but no cells.

        Args:
            caller: who asks.
            demand: what the answer has to contain; this waits for it.

        Returns:
            The version, and why its snapshot lacks the speed layer; None if it has it.

        Raises:
            NotYetError, BadQuestionError, TooBusyError: see `AtLeast.wait`.
        """
        snapshot, speed_failure = await self._snapshots.read_available()
        if demand is not None:

            async def again() -> ReadSnapshot:
                nonlocal speed_failure
                newest, speed_failure = await self._snapshots.read_available(fresh=True)
                return newest

            snapshot = await self._waits().wait(demand, snapshot, again, self._sleep, caller.tenant)
        version, stores = await self.stores.all()
        snapshot, failure = await self._seen_by(caller, snapshot, version, stores)
        return ReadVersion(snapshot, version), speed_failure or failure

    async def seen_by(self, caller: Caller, snapshot: ReadSnapshot) -> ReadSnapshot:
        """The snapshot as a caller may see it, without the speed layer if that cannot be read. See `VisibleSpeed`."""
        return (await self._seen_by(caller, snapshot, *await self.stores.all()))[0]

    async def _seen_by(
        self, caller: Caller, snapshot: ReadSnapshot, version: str, stores: Mapping[str, Store]
    ) -> tuple[ReadSnapshot, GalateaError | None]:
        """The snapshot as the caller may see it, and why it lacks the speed layer where it had it."""
        try:
            return await self._visible_speed.of(snapshot, version, stores, caller), None
        except CassandraUnavailableError as error:
            return replace(snapshot, positions=(), missing=("speed",)), error

    async def refuse_ended(self, snapshot: ReadSnapshot) -> None:
        """PublicationCollectedError or SpeedExpiredError if cells of a snapshot may be gone since it was read."""
        await self._snapshots.refuse_ended(snapshot)

    def _latest_day_start(self, request: Request, version: str, stores: Mapping[str, Store]) -> int | None:
        """When a day of a store of this request began last; None if its range does not depend on what day it is."""
        if not AskedRange(request.start, request.end, request.range).is_relative:
            return None
        zone = None if isinstance(request, CellsRequest | SensorsRequest) else request.timezone
        now = round_down(int(self._now().timestamp()))
        key = (now, version, zone, request.stores)
        if key not in self._day_starts:
            chosen = [stores.get(each) or unregistered(each) for each in request.stores or stores]
            days = {BusinessDays.of(store, zone_named(zone or store.timezone)) for store in chosen}
            self._day_starts[key] = latest_day_start(days, now)
        return self._day_starts[key]

    async def metrics(
        self, request: MetricsRequest, version: ReadVersion, caller: Caller, *, has_slot: bool = False
    ) -> bytes:
        """The JSON of an answer about one or several metrics, one series per store and combination of dimensions.

        Args:
            request: what is asked for.
            version: from `read_version` of this request.
            caller: whose stores are in the answer.
            has_slot: the caller holds a slot for it already, so a long answer does not wait for another.

        Raises:
            GalateaError: see `answer`; TooManyStoresError if a table would silently lack stores.
            TooBusyError: the answer is long, and the tenant has too many long ones in progress or waiting.
        """

        async def body() -> bytes:
            page = await self._page(request, caller)
            groups = await self._known_groups(request, caller)
            return await answer(
                [replace(each, now=version.now, known_groups=groups) for each in request.requests],
                page.stores,
                self.catalogue,
                version.snapshot,
                self.merged_cells,
                AnswerProducts(self._products, version.products, request.first.attributes),
                AnswerTargets(self._targets, version.targets) if self._targets else None,
                following=_following(request, page),
                slot=nullcontext if has_slot else partial(self._long.hold, caller.tenant),
            )

        return await self._cached(request, version, caller, body)

    async def _known_groups(self, request: MetricsRequest, caller: Caller) -> frozenset[str]:
        """The groups of all stores that the caller may see, if the answer is by groups."""
        if not split_by(request.first.by).groups:
            return frozenset()
        stores = await self.stores.visible((), caller, most=MOST_STORES_MERGED)
        return frozenset[str]().union(*(store.group_names for store in stores))

    async def _page(self, request: MetricsRequest, caller: Caller) -> StorePage:
        """The stores of an answer: one page of them, or all if it adds them up or ranks them."""
        first = request.first
        split = split_by(first.by)
        ranks_stores = first.is_ranked and not split.dimensions
        if not (split.merges_stores or ranks_stores):
            page = await self.stores.page(first.stores, request.page, caller)
            _refuse_incomplete(request, page)
            return page
        if request.page.is_requested:
            message = "`limit` and `after` page through stores, and this answer adds them up or ranks them."
            raise BadQuestionError(message, do="Leave `limit` and `after` out.")
        is_short = split.merges_stores or first.top is not None
        most = MOST_STORES_MERGED if is_short else MOST_STORES
        return StorePage(await self.stores.visible(first.stores, caller, most=most), None)

    async def index(self, request: IndexRequest, version: ReadVersion, caller: Caller) -> bytes:
        """The JSON of one metric beside what a model expected of it, one series per store. Arguments as `metrics`."""

        async def body() -> bytes:
            stores = await self.stores.visible(request.stores, caller)
            at = replace(request, now=version.now)
            slot = partial(self._long.hold, caller.tenant)
            response = await index_answer.answer(
                at, stores, self.catalogue, version.snapshot, self.merged_cells, slot=slot
            )
            return encode(response)

        return await self._cached(request, version, caller, body)

    async def sensors(self, request: SensorsRequest, version: ReadVersion, caller: Caller) -> bytes:
        """The JSON of the health of registered sensors, of a page of stores. Arguments as `metrics`."""

        async def body() -> bytes:
            page = await self.stores.page(request.stores, request.page, caller)
            at = replace(request, now=version.now)
            slot = partial(self._long.hold, caller.tenant)
            return encode(await sensor_health.answer(at, page, version.snapshot, self.merged_cells, slot))

        return await self._cached(request, version, caller, body)

    async def cells(self, request: CellsRequest, version: ReadVersion, caller: Caller) -> bytes:
        """The JSON of the cells of one view with the states of each layer. Not cached. Arguments as `metrics`."""
        view = self.view(request)
        stores = await self.stores.visible(request.stores, caller)
        spans = {}
        for store in stores:
            days = BusinessDays.of(store, zone_named(store.timezone))
            spans[store.id] = query_span(
                request.start,
                request.end,
                days,
                "15m",
                self.catalogue.ranges,
                name=request.range,
                now=version.now,
            )
        slot = partial(self._long.hold, caller.tenant)
        body = await answer_cells(view, spans, version.snapshot, self.merged_cells, slot)
        await self._refuse_collected(version.snapshot)
        return body

    async def receipts(
        self, caller: Caller, store: str, day: date, after: ReceiptPlace | None, limit: int
    ) -> RawReceiptPage:
        """A page of receipts of a store that the caller may see; see `ReceiptReader.receipts`.

        Raises:
            UnknownNameError: there is no such store, or the caller may not see it.
            TooBusyError: the tenant has too many pages in progress or waiting.
        """
        await self.stores.visible([store], caller)
        async with self._receipts.hold(caller.tenant):
            return await self.readers.receipts.receipts(store, day, after, limit)

    def view(self, request: CellsRequest) -> View:
        """The view of a request for cells. UnknownNameError if there is none of that name."""
        if request.view not in self.catalogue.views:
            raise UnknownNameError("view", request.view, self.catalogue.views)
        return self.catalogue.views[request.view]

    def expire_snapshot(self) -> None:
        """Let the next request read its snapshot itself: a client has just seen, or made, something newer."""
        self._snapshots.expire()

    async def provenance(self, caller: Caller) -> Provenance:
        """What an answer for the caller would be computed from now."""
        return provenance(await self.seen_by(caller, await self.snapshot()))

    async def snapshot(self) -> ReadSnapshot:
        """The snapshot of now, without the speed layer if that cannot be read."""
        return await self._snapshots.read(partial=True)

    async def _cached(
        self,
        request: MetricsRequest | IndexRequest | SensorsRequest,
        version: ReadVersion,
        caller: Caller,
        body: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        async def checked() -> bytes:
            made = await body()
            await self._refuse_collected(version.snapshot)
            return made

        key = digest(type(request).__name__, request, caller.visibility_scope, version.key)
        return await self._bodies.get(key, checked)

    async def _refuse_collected(self, snapshot: ReadSnapshot) -> None:
        """PublicationCollectedError if its cells were deleted while they were read: some may have been gone."""
        if snapshot.is_past:
            await past_snapshot(self.readers.published, snapshot.pointer.publication)


def _tenants(request: MetricRequest, stores: Mapping[str, Store], caller: Caller) -> list[str]:
    """The tenants of the stores of an answer."""
    chosen = (stores.get(id_) or unregistered(id_) for id_ in request.stores or stores)
    return sorted({store.tenant for store in chosen if caller.sees(store)})


def _refuse_incomplete(request: MetricsRequest, page: StorePage) -> None:
    """Nobody who did not ask for a page may take it for all stores."""
    if page.following is not None and not request.page.is_requested:
        message = f"More than {MOST_STORES} stores are registered, the maximum of one answer."
        more = "the header `Galatea-Next`" if request.is_table else "`next`"
        pages = f"`limit={MOST_STORES}`, then `after=` with what {more} says"
        raise TooManyStoresError(message, do=f"Add them up with `by=total`, or request pages: {pages}.")


def _following(request: MetricsRequest, page: StorePage) -> str | UnsetType | None:
    """`next`, where there is more, or pages were asked for."""
    if page.following is None and not request.page.is_requested:
        return UNSET
    return None if page.following is None else write_token(page.following)
