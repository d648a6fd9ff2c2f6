"""What serving reads, as Protocols: implemented by the tables of Cassandra, and by the World of the tests.

Every method raises CassandraUnavailableError when Cassandra does not answer in time. What a run wrote never changes
(R11), so it may be cached for ever; pointer, positions, speed rows and the registry's version must not be.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple, Protocol

from master_dataset.registry.stores import Store
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.publications import ListedPublication
from views.control.generation import Offsets, reached
from views.control.publication import Pointer
from views.core.day_cells import DayParts


class Position(NamedTuple):
    """How far a layer has read one partition. `received_at`: of the newest record read, or None if there was none."""

    topic: str
    partition: int
    position: int
    received_at: datetime | None


class StoreProgress(NamedTuple):
    """What the speed layer has counted of a store.

    `mark` rises with every micro-batch that wrote rows of it. `received_at`: of its newest event; None without one.
    """

    mark: int
    received_at: datetime | None

    @property
    def micro_batch(self) -> int:
        """The last one that wrote rows of it: first those of its events, then those of visits that have closed."""
        return self.mark // 2


class GenerationProgress(NamedTuple):
    """The progress of all stores of a generation, by id.

    `kept_from`, `kept_through`: the micro-batches in a row that have recorded theirs. Those of an earlier release have
    not.
    """

    stores: Mapping[str, StoreProgress]
    kept_from: int
    kept_through: int


class SpeedBlock(NamedTuple):
    """A speed row: what one micro-batch adds to the cells of an epoch; for the block see `views.core.cells`."""

    epoch: datetime
    block: str
    micro_batch: int


class Claim(NamedTuple):
    """The micro-batch that a generation claimed last, before its first row, and the offsets at which it ends.

    A generation claims the next one only once every row of this one is written and its positions are recorded.
    """

    micro_batch: int
    ends: Offsets

    def last_complete(self, positions: Iterable[Position]) -> int:
        """The last micro-batch of which every row is written and never changes: this one if it was read to its end."""
        read: dict[str, dict[int, int]] = {}
        for at in positions:
            read.setdefault(at.topic, {})[at.partition] = at.position
        return self.micro_batch if reached(read, self.ends) else self.micro_batch - 1


class ReceiptPlace(NamedTuple):
    """Where a receipt lies within its (store, day): newest first, then by till and number."""

    happened_at: datetime
    till: str
    transaction_id: str


class RawReceipt(NamedTuple):
    """A receipt as it was received. `value` is its JSON text."""

    place: ReceiptPlace
    received_at: datetime | None
    value: str


RECEIPT_PAGE_BYTES = 4_000_000
"""Of the receipts on a page as they were received. A single receipt may have 1,000,000."""


class RawReceiptPage(NamedTuple):
    """Receipts in the order of ReceiptPlace. `has_more`: others follow the last one."""

    receipts: Sequence[RawReceipt]
    has_more: bool


def receipts_on_page(sizes: Sequence[int], limit: int, page_bytes: int = RECEIPT_PAGE_BYTES) -> int:
    """Count the receipts that are on a page.

    Args:
        sizes: bytes of each receipt, in the order of ReceiptPlace.
        limit: receipts of a page at most.
        page_bytes: bytes of a page at most, unless its first receipt alone has more.

    Returns:
        How many of them, from the first on: at least one if there are any.
    """
    total = 0
    for count, size in enumerate(sizes[:limit]):
        total += size
        if count and total > page_bytes:
            return count
    return min(limit, len(sizes))


@dataclass(frozen=True)
class PublicationEntry:
    """One publication in the history.

    `manifest` names its cells; `definitions` maps each view to the hash of the definition they were made with.
    `collected_at`: when its cells were garbage-collected, None while they are kept. `stats`: counts of its recompute.
    """

    publication: int
    cut: datetime
    published_at: datetime | None
    by: str
    why: str
    manifest: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    collected_at: datetime | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pointer(self) -> Pointer:
        """A pointer to this publication, without speed rows: those of its time may have expired."""
        return Pointer(self.publication, self.cut, self.manifest, 0, self.definitions)

    def response(self) -> ListedPublication:
        """The publication as the API and the command line show it. What its recompute did not count is null."""
        return ListedPublication(
            publication=self.publication,
            cut=iso_instant(self.cut),
            published_at=iso_instant(self.published_at),
            by=self.by,
            why=self.why,
            collected=self.collected_at is not None,
            restores=self.stats.get("restores"),
            rows=self._rows,
            partitions=self.stats.get("partitions"),
            days=self.stats.get("days"),
            blocks=self.stats.get("blocks"),
            seconds=self.stats.get("seconds"),
            views=self.stats.get("views"),
        )

    @property
    def _rows(self) -> int | None:
        """Events read, counted once per view."""
        views: Mapping[str, Mapping[str, int]] | None = self.stats.get("views")
        return sum(each.get("events", 0) for each in views.values()) if views else self.stats.get("rows")


class PublishedReader(Protocol):
    """What is published."""

    async def pointer(self) -> Pointer:
        """The pointer row, at QUORUM. Publication 0 exists from the start."""

    async def manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        """(view, day) to the run that wrote its cells. Immutable. Empty for the name ""."""

    async def entry(self, number: int) -> PublicationEntry | None:
        """One publication of the history; None if there never was one of that number."""

    async def history(self, before: int, limit: int) -> Sequence[PublicationEntry]:
        """At most `limit` publications with a number less than `before`, newest first."""


class BatchReader(Protocol):
    """What runs wrote. Immutable."""

    async def stores_of(self, run: str, view: str, month: date) -> Mapping[date, frozenset[str]]:
        """Which stores have a block, per day that the run computed in the month of this first day."""

    async def blocks(self, view: str, store: str, run: str, days: Sequence[date]) -> Mapping[date, str]:
        """The blocks of days of one month. A day that has none is left out: the caller knows if it must be there."""

    async def day_parts(self, run: str, view: str) -> Mapping[date, DayParts]:
        """Which day cells the run has written, per day; a day of which it wrote none at all is left out."""

    async def day_cells(self, run: str, view: str, day: date) -> Mapping[str, bytes]:
        """All parts of a day by their names, also those that no `DayParts` names."""


class SpeedReader(Protocol):
    """What the speed layer has written. A reader may see half a micro-batch, hence: positions first, then rows."""

    async def positions(self, generation: int) -> Sequence[Position]:
        """How far the generation has read."""

    async def progress(self, generation: int) -> GenerationProgress | None:
        """What it has counted of each store; None if no process has said so."""

    async def read_through(self) -> datetime | None:
        """Every record received before was read, as the running process has measured it last; None if it never did."""

    async def claim(self, generation: int) -> Claim | None:
        """Its last claim. None before the first one, when it has no rows."""

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        """The rows of one received day with an epoch at or after the cut."""

    async def rows_of(
        self, view: str, stores: Sequence[str], received_day: date, generation: int, cut: datetime
    ) -> Mapping[str, Sequence[SpeedBlock]]:
        """As `rows`, of several stores; one without any is left out."""


class StoreReader(Protocol):
    """The registry of shops."""

    async def version(self) -> str:
        """Changes with every load of the registry."""

    async def stores(self) -> Sequence[Store]:
        """Every registered store."""


class ReceiptReader(Protocol):
    """Receipts as they came."""

    async def receipts(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> RawReceiptPage:
        """The receipts of a store and UTC day behind `after`: at most `limit`, and about `RECEIPT_PAGE_BYTES`.

        A page without receipts is the last one.
        """

    async def archived(self, topic: str) -> Sequence[Position]:
        """How far the master dataset has read the topic."""


@dataclass(frozen=True)
class Readers:
    """Everything that serving reads from."""

    published: PublishedReader
    batch: BatchReader
    speed: SpeedReader
    stores: StoreReader
    receipts: ReceiptReader
