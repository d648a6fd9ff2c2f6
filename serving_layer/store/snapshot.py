"""The read snapshot: what one answer is computed from. Read once per request, before any cell.

    ReadSnapshot   the pointer of the batch layer, and the positions of the speed layer
    ReadVersion    the snapshot and the version of the registry: equal versions have equal answers
    VisibleSpeed   limits a snapshot to what a caller may see move
    as_of          what every answer says of its snapshot

`speed_as_of` is the latest receipt time over all partitions: the speed layer has read a record received then, and in
that partition everything before it. An idle partition does not hold it back, and a lagging one does not show in it
(`/v1/freshness` lists every partition). A caller who does not see every store gets that of their own stores.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import NamedTuple

from cachetools import LRUCache
from msgspec import UNSET

from master_dataset.errors import (
    CassandraUnavailableError,
    GalateaError,
    SpeedExpiredError,
    SpeedUnavailableError,
    UnknownNameError,
)
from master_dataset.registry.products import ProductMaster
from master_dataset.registry.stores import Store
from master_dataset.registry.targets import TargetSet
from serving_layer.caching import RefreshAheadCache, SharedCache, digest, keep
from serving_layer.errors import DefinitionNotPublishedError, PublicationBehindError, PublicationCollectedError
from serving_layer.keys.key import Caller
from serving_layer.off_loop import off_loop
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.metrics import AsOf, Provenance
from serving_layer.store.readers import (
    GenerationProgress,
    Position,
    PublicationEntry,
    PublishedReader,
    Readers,
    SpeedReader,
    StoreProgress,
)
from views.control.publication import Pointer
from views.core import View
from views.core.local_time import ONE_DAY, round_down

SNAPSHOTS_KEPT, SCOPES_KEPT = 4, 1000
"""Snapshots of which a process keeps the progress of stores, and visibility scopes whose stores it knows."""
PROGRESS_KEPT, PROGRESS_OVERHEAD = 100_000, 100
"""How many stores' progress is kept over all scopes, and as how many stores each scope and snapshot counts beside its
own: a chain of thousands of stores has as many in each, and another snapshot every second."""
CLOCK_SECONDS = 1.0
"""How old the time may be up to which the speed layer has read everything."""


class VisibleProgress(NamedTuple):
    """What moves in the answers of a caller from whom stores are hidden.

    `stores`: the progress of the others, by id. `clock`: a full quarter of an hour, before which the speed layer has
    read everything; it moves with the time, whoever sends. None if that is not known. `unfinished`: how far partitions
    were read, if the last micro-batch of one of these stores is not complete yet: answers from several views have its
    rows only then. Empty if all are complete. `kept_from`: the first micro-batch since when all progress is recorded.
    `digest`: stands for all of it but the clock in the keys of thousands of cached answers.
    """

    stores: tuple[tuple[str, StoreProgress], ...]
    clock: datetime | None
    unfinished: tuple[Position, ...]
    kept_from: int
    digest: str


@dataclass(frozen=True)
class ReadSnapshot:
    """The state of both layers at one moment.

    Attributes:
        pointer: the publication that counts, its cut, its manifest, and the generation of the speed layer.
        positions: how far the speed layer has read each partition.
        missing: the layers that a partial answer had to do without.
        is_past: a publication was named by its number, and its cells alone are read.
        visible: what a caller may see move from whom stores are hidden; None for one who sees every store.
    """

    pointer: Pointer
    positions: tuple[Position, ...]
    missing: tuple[str, ...]
    is_past: bool = False
    visible: "VisibleProgress | None" = None

    @property
    def read_until(self) -> datetime | None:
        """When the newest record that the speed layer has read was received; None if there is none."""
        return max((at.received_at for at in self.positions if at.received_at), default=None)

    @property
    def speed_as_of(self) -> datetime | None:
        """The same of the stores that the caller sees."""
        if self.visible is None:
            return self.read_until
        return max((at.received_at for _, at in self.visible.stores if at.received_at), default=None)

    @property
    def movement(self) -> tuple[Hashable, ...]:
        """Equal as long as the speed layer has read no event that the caller may see."""
        return self.positions if self.visible is None else (self.visible.digest, self.visible.clock)

    @property
    def as_of_at(self) -> datetime:
        """Until when the snapshot knows what happened: the cut, or as far as the speed layer has read."""
        clock = self.visible.clock if self.visible else None
        return max(at for at in (self.pointer.cut, self.speed_as_of, clock) if at)

    @property
    def is_loading(self) -> bool:
        """Whether nothing was published yet. Events that the speed layer leaves to batch are not counted until then."""
        return not self.pointer.publication

    @property
    def has_speed(self) -> bool:
        """Whether speed rows are part of the answer."""
        return not self.missing and not self.is_past

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that were read. Publication 0 has no cells, so it is no layer."""
        batch = ("batch",) if self.pointer.publication else ()
        return (*batch, "speed") if self.has_speed else batch

    def received_days(self, ttl: timedelta) -> Sequence[date]:
        """The days of receipt that may hold speed rows that count.

        They begin at the cut, or where rows have expired, and end the day after the last one read.
        """
        if self.read_until is None:
            return ()
        last = self.read_until.astimezone(UTC).date() + ONE_DAY
        first = max(self.pointer.cut.astimezone(UTC), self.read_until.astimezone(UTC) - ttl - ONE_DAY).date()
        return [first + ONE_DAY * number for number in range((last - first).days + 1)]

    def refuse_unpublished(self, view: View) -> None:
        """Raise DefinitionNotPublishedError if the definition of the view is not the published one."""
        published = self.pointer.definitions.get(view.name)
        is_before_first = not self.pointer.publication and not self.pointer.definitions  # there are no rows yet either
        if published != view.definition_hash and not is_before_first:
            known = f"published as `{published}`" if published else "not published yet"
            when = f" in publication `{self.pointer.publication}`" if self.is_past else ""
            message = f"The view `{view.name}` is defined as `{view.definition_hash}` and {known}{when}."
            do = "Use `as_of` with a publication since the change." if self.is_past else "galatea rebuild"
            raise DefinitionNotPublishedError(message, do=do)


class ReadVersion(NamedTuple):
    """What the answer to a request depends on, beside the request. `registry`: the version of the registered stores.

    `now`: when a day of its stores began last, in seconds since 1970, if the range of the request is relative to
    today; until the next one begins, the range has the same bounds. None for all other requests.
    `products`, `targets`: the versions of the product masters and of the targets, if the request reads any.
    """

    snapshot: ReadSnapshot
    registry: str
    now: int | None = None
    products: tuple[ProductMaster, ...] = ()
    targets: tuple[TargetSet, ...] = ()

    @property
    def batch_key(self) -> tuple[Hashable, ...]:
        """Equal as long as nothing is published and no store registered: all that matters without speed rows."""
        pointer = self.snapshot.pointer
        published = (pointer.publication, pointer.cut, pointer.manifest, pointer.generation)
        return (*published, self.snapshot.missing, self.snapshot.is_past, self.registry)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Equal as long as nothing has changed that an answer is computed from; part of cache keys and entity tags."""
        return (*self.key_without_events, self.snapshot.movement)

    @property
    def key_without_events(self) -> tuple[Hashable, ...]:
        """Equal as long as nothing has changed but that the speed layer has read more events."""
        return (
            *self.batch_key,
            self.now,
            tuple((master.tenant, master.version) for master in self.products),
            tuple((each.tenant, each.version) for each in self.targets),
        )


class SnapshotReader:
    """Reads the snapshots of requests; never goes back to an older publication than any process has served.

    All processes of a deployment must have the same `recent_seconds`, and read the pointer at QUORUM.
    """

    def __init__(  # noqa: PLR0913 - three of them tell the time
        self,
        readers: Readers,
        speed_ttl: timedelta,
        now: Callable[[], datetime],
        *,
        recent_seconds: float = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Reads nothing yet.

        Args:
            readers: what serving reads from.
            speed_ttl: how long speed rows live.
            now: the time by which they expire.
            recent_seconds: how long before a request its snapshot may have been read.
            clock: monotonic seconds, for `recent_seconds`.
            sleep: waits so many of these seconds.
        """
        self._readers, self._ttl, self._now = readers, speed_ttl, now
        self._first: datetime | None = None
        self._served = -1
        self._last: ReadSnapshot | None = None
        self._recent_seconds, self._sleep = recent_seconds, sleep
        self._recent = RefreshAheadCache(self._read, recent_seconds, clock)

    async def read(self, *, partial: bool, fresh: bool = False) -> ReadSnapshot:
        """The snapshot of now.

        Args:
            partial: return a snapshot without the speed layer where that cannot be read.
            fresh: read it after this call began.

        Raises:
            CassandraUnavailableError: the pointer cannot be read; or positions cannot, and the request is not partial.
            PublicationBehindError: a replica is older than what was served already.
            SpeedUnavailableError, SpeedExpiredError: no generation is published, or its rows may have expired, and the
                request is not partial.
        """
        snapshot, failed = await self._recent.read(fresh=fresh)
        if failed is not None and not partial:
            raise failed
        return snapshot

    async def read_available(self, *, fresh: bool = False) -> tuple[ReadSnapshot, GalateaError | None]:
        """The snapshot of now, and why it lacks the speed layer; None if it has it.

        Args:
            fresh: read it after this call began.

        Raises:
            CassandraUnavailableError: the pointer cannot be read.
            PublicationBehindError: a replica is older than what was served already.
        """
        return await self._recent.read(fresh=fresh)

    def expire(self) -> None:
        """Let the next snapshot be read after this call."""
        self._recent.expire()

    async def _read(self) -> tuple[ReadSnapshot, GalateaError | None]:
        """The snapshot, without the speed layer where reading it failed, and why."""
        pointer = await self._readers.published.pointer()
        if pointer.publication > self._served:
            # Every process answers from a snapshot of at most that age. After this pause none of them answers from an
            # older publication any more, so a client that sees this one here never sees an older one elsewhere.
            await self._sleep(self._recent_seconds)
        if pointer.publication < self._served:
            message = (
                f"A replica shows publication `{pointer.publication}`, and `{self._served}` was answered from already."
            )
            raise PublicationBehindError(message, do="Try again.")
        self._served = pointer.publication
        try:
            snapshot = ReadSnapshot(pointer, await self._positions_of(pointer), ())
        except (CassandraUnavailableError, SpeedUnavailableError, SpeedExpiredError) as error:
            return ReadSnapshot(pointer, (), ("speed",)), error
        if (
            snapshot != self._last
        ):  # an equal snapshot stays the same object, which makes comparing cached answers cheap
            self._last = snapshot
        return self._last, None

    async def _positions_of(self, pointer: Pointer) -> tuple[Position, ...]:
        number = pointer.generation
        if not number:
            raise SpeedUnavailableError(
                "No generation of the speed layer is published yet.", do="galatea status, or `partial=true`"
            )
        read = await self._readers.speed.positions(number)
        await self._refuse_expired(pointer)
        return tuple(sorted(read))

    async def refuse_ended(self, snapshot: ReadSnapshot) -> None:
        """Refuse to read on from a snapshot that may have lost cells or speed rows since.

        Raises:
            PublicationCollectedError: garbage collection deletes the cells of its publication.
            SpeedExpiredError: its speed rows may have expired.
        """
        if snapshot.pointer.publication:
            await past_snapshot(self._readers.published, snapshot.pointer.publication)
        if snapshot.has_speed:
            await self._refuse_expired(snapshot.pointer)

    async def _refuse_expired(self, pointer: Pointer) -> None:
        since = pointer.cut if pointer.publication else await self._first_published_at()
        if since is not None and is_expired(since, self._now(), self._ttl):
            what = f"Nothing received since {since:%Y-%m-%d %H:%M} UTC is published"
            message = f"{what}, and speed rows live {self._ttl.days} days."
            raise SpeedExpiredError(message, do="galatea rebuild")

    async def _first_published_at(self) -> datetime | None:
        """When publication 0 was written: before the first speed row."""
        if self._first is None:
            first = await self._readers.published.entry(0)
            self._first = first.published_at if first else None
        return self._first


class _Counted(NamedTuple):
    """The progress of all stores, and the last micro-batch that was complete by then."""

    progress: GenerationProgress
    last_complete: int


class VisibleSpeed:
    """Limits snapshots to the stores that a caller sees, so that nobody sees others send (ADR 0069)."""

    def __init__(self, speed: SpeedReader, clock: Callable[[], float]) -> None:
        """Reads nothing yet. `clock`: monotonic seconds."""
        self._speed = speed
        self._read_through = RefreshAheadCache(speed.read_through, CLOCK_SECONDS, clock)
        self._visible: LRUCache[Hashable, tuple[str, ...] | None] = LRUCache(SCOPES_KEPT)
        self._read: SharedCache[Hashable, _Counted | None] = SharedCache(SNAPSHOTS_KEPT)
        self._own: SharedCache[Hashable, VisibleProgress | None] = SharedCache(PROGRESS_KEPT, _progress_size)

    async def of(
        self, snapshot: ReadSnapshot, registry: str, stores: Mapping[str, Store], caller: Caller
    ) -> ReadSnapshot:
        """The snapshot as the caller may see it: the same if they see every store.

        Args:
            snapshot: the state of both layers.
            registry: the version of the registered stores.
            stores: all of them, by id.
            caller: who asks.

        Raises:
            CassandraUnavailableError: the progress of stores cannot be read.
        """
        visible = self._visible_to(caller, registry, stores)
        if visible is None or not snapshot.has_speed:
            return snapshot
        at = snapshot.pointer.generation, snapshot.positions

        async def own() -> VisibleProgress | None:
            read = await self._read.get(at, lambda: self._counted(*at))
            if read is None:
                return None
            known, kept_from, _ = read.progress
            stores = tuple((store, known[store]) for store in visible if store in known)
            is_complete = all(progress.micro_batch <= read.last_complete for _, progress in stores)
            unfinished = () if is_complete else snapshot.positions
            moved = await off_loop(len(stores), partial(digest, stores, unfinished, kept_from))
            return VisibleProgress(stores, None, unfinished, kept_from, moved)

        progress = await self._own.get((caller.visibility_scope, registry, *at), own)
        if progress is None:
            return snapshot
        through = await self._read_through.read()
        return replace(snapshot, visible=progress._replace(clock=through and _window_of(through)))

    async def _counted(self, generation: int, positions: Sequence[Position]) -> "_Counted | None":
        claim = await self._speed.claim(generation)
        progress = await self._speed.progress(generation)
        last_complete = claim.last_complete(positions) if claim else -1
        # An earlier release does not record progress: while it writes, answers move with positions.
        has_all = progress is not None and progress.kept_through >= last_complete
        return _Counted(progress, last_complete) if progress is not None and has_all else None

    def _visible_to(self, caller: Caller, registry: str, stores: Mapping[str, Store]) -> tuple[str, ...] | None:
        """The ids of the stores that the caller sees; None if these are all."""
        key = caller.visibility_scope, registry
        if key not in self._visible:
            own = tuple(sorted(id_ for id_, store in stores.items() if caller.sees(store)))
            keep(self._visible, key, None if len(own) == len(stores) else own)
        return self._visible[key]


def _progress_size(progress: VisibleProgress | None) -> int:
    return PROGRESS_OVERHEAD + (len(progress.stores) if progress else 0)


def _window_of(at: datetime) -> datetime:
    """The window that the instant lies in. No moment within it shows."""
    return datetime.fromtimestamp(round_down(int(at.timestamp())), UTC)


async def past_snapshot(published: PublishedReader, number: int) -> ReadSnapshot:
    """The cells of one publication exactly as they were published.

    Raises:
        UnknownNameError: there is no such publication.
        PublicationCollectedError: its cells are deleted.
    """
    entry = await publication_entry(published, number)
    if entry.collected_at is not None:
        message = f"The cells of publication `{number}` were collected at {entry.collected_at:%Y-%m-%d %H:%M} UTC."
        raise PublicationCollectedError(message, do="`GET /v1/publications` says which are kept.")
    return ReadSnapshot(entry.pointer, (), (), is_past=True)


async def publication_entry(published: PublishedReader, number: int) -> PublicationEntry:
    """A publication that has cells. UnknownNameError if there is none of this number; publication 0 has none."""
    entry = await published.entry(number) if number else None
    if entry is None:
        raise UnknownNameError("publication", str(number), (), do="`GET /v1/publications` lists them.")
    return entry


def expires_at(since: datetime, ttl: timedelta) -> datetime:
    """When the speed rows of what was received since then begin to expire, with a day to spare (R10)."""
    return since + ttl - ONE_DAY


def is_expired(since: datetime, now: datetime, ttl: timedelta) -> bool:
    """Whether rows may have expired. By the clock, because rows expire by it whether or not the speed layer reads."""
    return now > expires_at(since, ttl)


def as_of(snapshot: ReadSnapshot, waiting: int) -> AsOf:
    """The field `as_of` of an answer. `waiting`: events of its windows that only the next publication will count."""
    return AsOf(
        publication=snapshot.pointer.publication,
        cut=iso_instant(snapshot.pointer.cut),
        speed_as_of=iso_instant(snapshot.speed_as_of),
        waiting_for_batch=waiting,
        layers=snapshot.layers,
        missing=snapshot.missing or UNSET,
        loading=snapshot.is_loading or UNSET,
    )


def provenance(snapshot: ReadSnapshot) -> Provenance:
    """The same without `waiting_for_batch`, which depends on the windows."""
    return Provenance(
        publication=snapshot.pointer.publication,
        cut=iso_instant(snapshot.pointer.cut),
        speed_as_of=iso_instant(snapshot.speed_as_of),
        layers=snapshot.layers,
        missing=snapshot.missing or UNSET,
        loading=snapshot.is_loading or UNSET,
    )
