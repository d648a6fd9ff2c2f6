"""What one answer rests on: the pointer, and how far speed has read. Read once per request, before any row.

`speed_as_of` is the greatest receipt time over the partitions: speed has read a record received then, and in that
partition everything before it. An idle partition does not hold it back; a lagging one is not shown by it
(`/v1/freshness` lists every partition).

When an answer is of: how far the layers and the registry were. Of one moment a question has one answer.

What every answer says about itself.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.errors import (
    CassandraUnavailableError,
    GalateaError,
    SpeedExpiredError,
    SpeedUnavailableError,
    UnknownNameError,
)
from serving_layer.admin.publications import PublicationEntry
from serving_layer.caching import RefreshAheadCache
from serving_layer.errors import DefinitionNotPublishedError, PublicationBehindError, PublicationCollectedError
from serving_layer.query.timeline import iso_instant
from serving_layer.responses.metrics import AsOf, Provenance
from serving_layer.store.readers import Position, PublishedReader, Readers
from views.control.publication import Pointer
from views.core import View

DAY = timedelta(days=1)


@dataclass(frozen=True)
class ReadSnapshot:
    """`missing` names the layers that a partial answer had to do without.

    `is_past`: a publication was asked for by its number, and its cells alone are the answer.
    """

    pointer: Pointer
    positions: tuple[Position, ...]
    missing: tuple[str, ...]
    is_past: bool = False

    @property
    def speed_as_of(self) -> datetime | None:
        """None if speed has read nothing yet, or is missing."""
        return max((at.received_at for at in self.positions if at.received_at), default=None)

    @property
    def as_of_at(self) -> datetime:
        """Until when the answer knows what happened: batch up to the cut, speed as far as it has read."""
        return max(self.pointer.cut, self.speed_as_of or self.pointer.cut)

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
        """Which days of receipt may hold rows that count: from the cut, or as long as rows live, to the day after."""
        if self.speed_as_of is None:
            return ()
        last = self.speed_as_of.astimezone(UTC).date() + DAY
        first = max(self.pointer.cut.astimezone(UTC), self.speed_as_of.astimezone(UTC) - ttl - DAY).date()
        return [first + DAY * number for number in range((last - first).days + 1)]

    def refuse_unpublished(self, view: View) -> None:
        """Raise DefinitionNotPublishedError if the view says something else than what was published."""
        published = self.pointer.definitions.get(view.name)
        is_beginning = not self.pointer.publication and not self.pointer.definitions  # there are no rows yet either
        if published != view.definition_hash and not is_beginning:
            known = f"published as `{published}`" if published else "not published yet"
            when = f" in publication `{self.pointer.publication}`" if self.is_past else ""
            message = f"The view `{view.name}` is defined as `{view.definition_hash}` and {known}{when}."
            do = "Ask as of a publication since the change." if self.is_past else "galatea rebuild"
            raise DefinitionNotPublishedError(message, do=do)


class SnapshotReader:
    """Reads the basis of one request after another; never goes back behind a publication it has served."""

    def __init__(
        self,
        readers: Readers,
        speed_ttl: timedelta,
        now: Callable[[], datetime],
        *,
        recent_seconds: float = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`speed_ttl`: how long speed rows live. `now`: the time by which they expire.

        `recent_seconds`: how long before a question its basis may have been read, by `clock`.
        """
        self._readers, self._ttl, self._now = readers, speed_ttl, now
        self._begun: datetime | None = None
        self._served = -1
        self._whole: ReadSnapshot | None = None
        self._recent = RefreshAheadCache(self._read, recent_seconds, clock)

    async def read(self, *, partial: bool, fresh: bool = False) -> ReadSnapshot:
        """The basis as of now. SpeedUnavailableError, SpeedExpiredError unless `partial`, then a basis without speed.

        `fresh`: read after this call began.
        """
        basis, failed = await self._recent.read(fresh=fresh)
        if failed is not None and not partial:
            raise failed
        return basis

    def expire(self) -> None:
        """The next basis is read after this call."""
        self._recent.expire()

    async def _read(self) -> tuple[ReadSnapshot, GalateaError | None]:
        """The basis, without speed where its reading failed."""
        pointer = await self._readers.published.pointer()
        if pointer.publication < self._served:
            message = (
                f"A replica shows publication `{pointer.publication}`, and `{self._served}` was answered from already."
            )
            raise PublicationBehindError(message, do="Ask again.")
        self._served = pointer.publication
        try:
            basis = ReadSnapshot(pointer, await self._positions_of(pointer), ())
        except (CassandraUnavailableError, SpeedUnavailableError, SpeedExpiredError) as error:
            return ReadSnapshot(pointer, (), ("speed",)), error
        if basis != self._whole:  # what is equal stays the same object, so that answers are compared with it at no cost
            self._whole = basis
        return self._whole, None

    async def _positions_of(self, pointer: Pointer) -> tuple[Position, ...]:
        number = pointer.generation
        if not number:
            raise SpeedUnavailableError(
                "No generation of the speed layer is published yet.", do="galatea status, or `partial=true`"
            )
        read = await self._readers.speed.positions(number)
        since = pointer.cut if pointer.publication else await self._beginning()
        if since is not None and is_expired(since, self._now(), self._ttl):
            what = f"Nothing received since {since:%Y-%m-%d %H:%M} UTC is published"
            message = f"{what}, and speed rows live {self._ttl.days} days."
            raise SpeedExpiredError(message, do="galatea rebuild")
        return tuple(sorted(read))

    async def _beginning(self) -> datetime | None:
        """When publication 0 was written down: before the first speed row."""
        if self._begun is None:
            first = await self._readers.published.entry(0)
            self._begun = first.published_at if first else None
        return self._begun


async def past_snapshot(published: PublishedReader, number: int) -> ReadSnapshot:
    """The cells of one publication exactly as they were published. UnknownNameError, PublicationCollectedError."""
    entry = await publication_entry(published, number)
    if entry.collected_at is not None:
        message = f"The cells of publication `{number}` were collected at {entry.collected_at:%Y-%m-%d %H:%M} UTC."
        raise PublicationCollectedError(message, do="`GET /v1/publications` says which are kept.")
    return ReadSnapshot(entry.pointer, (), (), is_past=True)


async def publication_entry(published: PublishedReader, number: int) -> PublicationEntry:
    """A publication that says something. UnknownNameError: publication 0 has no cells."""
    entry = await published.entry(number) if number else None
    if entry is None:
        raise UnknownNameError("publication", str(number), (), do="`GET /v1/publications` lists them.")
    return entry


def expires_at(since: datetime, ttl: timedelta) -> datetime:
    """From when on rows of what was received since then may be gone, with a day to spare (R10)."""
    return since + ttl - DAY


def is_expired(since: datetime, now: datetime, ttl: timedelta) -> bool:
    """Judged by the clock, as rows expire by it, and not by how far speed has read: it may have stood still."""
    return now > expires_at(since, ttl)


class ReadVersion(NamedTuple):
    """Read once per request, before any row. `registry`: the version of the registered stores."""

    snapshot: ReadSnapshot
    registry: int

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Equal as long as nothing moved that an answer rests on."""
        pointer = self.snapshot.pointer
        published = (pointer.publication, pointer.cut, pointer.manifest, pointer.generation)
        return (*published, self.snapshot.positions, self.snapshot.missing, self.snapshot.is_past, self.registry)


def as_of(basis: ReadSnapshot, waiting: int) -> AsOf:
    """The part `as_of` of an answer. `missing` is there only when a partial answer had to do without a layer."""
    return AsOf(
        publication=basis.pointer.publication,
        cut=iso_instant(basis.pointer.cut),
        speed_as_of=iso_instant(basis.speed_as_of),
        waiting_for_batch=waiting,
        layers=basis.layers,
        missing=basis.missing or UNSET,
    )


def provenance(basis: ReadSnapshot) -> Provenance:
    """The same without `waiting_for_batch`, which belongs to windows."""
    return Provenance(
        publication=basis.pointer.publication,
        cut=iso_instant(basis.pointer.cut),
        speed_as_of=iso_instant(basis.speed_as_of),
        layers=basis.layers,
        missing=basis.missing or UNSET,
    )
