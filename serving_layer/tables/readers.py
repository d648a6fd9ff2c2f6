"""The tables that queries read, as the readers of `store/readers.py`.

PublishedTables   publications, manifests
BatchTables       run_days, batch_cells, day_cells
SpeedTables       speed_positions, speed_stores, lag, generations, speed_cells_by_store, speed_cells
StoreTables       store_sets, registered_stores
TopicTables       generations, partition_growths
"""

import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

import orjson
from cachetools import LRUCache

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.store_tables import (
    SELECT_FORMER_STORES,
    SELECT_FORMER_VERSION,
    SELECT_STORES,
    SELECT_VERSION,
)
from master_dataset.registry.stores import Store
from serving_layer.store.at_least import Opening
from serving_layer.store.readers import (
    Claim,
    GenerationProgress,
    Position,
    PublicationEntry,
    SpeedBlock,
    StoreProgress,
)
from serving_layer.tables.async_session import AsyncSession, Row, day_of, instant_of, optional_instant
from views.control.generation import claimed_ends
from views.control.publication import SELECT_POINTER, SERIES, Pointer, generation_of
from views.control.speed_layout import CELL_TABLES, SELECT_DEFINITIONS, SpeedLayout
from views.control.token import topic_tag
from views.core.cut import month_of
from views.core.day_cells import DayParts
from views.core.large_blocks import days_of_parts

PARTS_AT_ONCE = 16
"""Rows of day cells per page: each may have 1 MB, and more if an earlier release wrote it."""
LAYOUTS_KEPT = 16
"""Of how many generations a process keeps where their rows lie; one of them is read."""
_SELECT_ENTRY = (
    "SELECT publication, cut, published_at, published_by, why, manifest, definitions, collected_at, stats "
    "FROM publications WHERE series = ?"
)


class PublishedTables:
    """PublishedReader. The session reads at QUORUM, so a switch that was acknowledged is seen."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._pointer = session.prepare(SELECT_POINTER)
        self._manifest = session.prepare("SELECT view_name, day, run FROM manifests WHERE manifest = ?")
        self._one = session.prepare(f"{_SELECT_ENTRY} AND publication = ?")
        self._history = session.prepare(f"{_SELECT_ENTRY} AND publication < ? LIMIT ?")

    async def pointer(self) -> Pointer:
        """Raise CassandraUnavailableError while the stack is not set up yet."""
        rows = await self._session.rows(self._pointer)
        if not rows or rows[0][0] is None:
            raise CassandraUnavailableError("Nothing is published, not even publication 0.", do="galatea up")
        publication, cut, manifest, current, served, definitions = rows[0]
        generation = generation_of(current, served)
        return Pointer(publication, instant_of(cut), manifest or "", generation, dict(definitions or {}))

    async def manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        """(view, day) to run."""
        rows = await self._session.rows(self._manifest, name) if name else []
        return {(view, day_of(day)): run for view, day, run in rows}

    async def entry(self, number: int) -> PublicationEntry | None:
        """The publication of this number; None if there is none."""
        rows = await self._session.rows(self._one, SERIES, number)
        return _entry(rows[0]) if rows and rows[0][1] is not None else None

    async def history(self, before: int, limit: int) -> Sequence[PublicationEntry]:
        """Newest first, as the table is sorted."""
        rows = await self._session.rows(self._history, SERIES, before, limit)
        return [_entry(row) for row in rows if row[1] is not None]


def _entry(row: Row) -> PublicationEntry:
    number, cut, at, by, why, manifest, definitions, collected_at, stats = row
    return PublicationEntry(
        number,
        instant_of(cut),
        optional_instant(at),
        by or "",
        why or "",
        manifest or "",
        dict(definitions or {}),
        optional_instant(collected_at),
        orjson.loads(stats or "{}"),
    )


class BatchTables:
    """Implements `BatchReader` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._days = session.prepare(
            "SELECT day, stores FROM run_days WHERE run = ? AND view_name = ? AND day >= ? AND day < ?"
        )
        self._blocks = session.prepare(
            "SELECT day, block FROM batch_cells "
            "WHERE view_name = ? AND store = ? AND month = ? AND run = ? AND day >= ? AND day <= ?"
        )

        self._parts = session.prepare("SELECT day, day_cells FROM run_days WHERE run = ? AND view_name = ?")
        self._day_cells = session.prepare(
            "SELECT part, block FROM day_cells WHERE run = ? AND view_name = ? AND day = ?"
        )

    async def stores_of(self, run: str, view: str, month: date) -> Mapping[date, frozenset[str]]:
        """Days with the same stores, which are most of a month, share one set; all sets share the texts."""
        rows = await self._session.rows(self._days, run, view, month, month_of(month + timedelta(days=31)))
        sets = {stores: frozenset(map(sys.intern, orjson.loads(stores))) for stores in {stores for _, stores in rows}}
        return {day_of(day): sets[stores] for day, stores in rows}

    async def blocks(self, view: str, store: str, run: str, days: Sequence[date]) -> Mapping[date, str]:
        """One read, since the days of a month lie together; between these days there may be others."""
        place = view, store, month_of(days[0]), run
        found = await self._kept(place, min(days), max(days))
        return {day: whole for day, kept in found.items() if (whole := await self._whole(place, day, kept)) is not None}

    async def _whole(self, place: tuple[object, ...], day: date, kept: str) -> str | None:
        """A block that may be in parts; None if one is missing."""
        if not (under := days_of_parts(day, kept)):
            return kept
        parts = [(await self._kept(place, each, each)).get(each) for each in under]
        return None if None in parts else "".join(filter(None, parts))

    async def _kept(self, place: tuple[object, ...], first: date, last: date) -> dict[date, str]:
        rows = await self._session.rows(self._blocks, *place, first, last)
        return {day_of(day): block for day, block in rows}

    async def day_parts(self, run: str, view: str) -> Mapping[date, DayParts]:
        """Of the days whose row says it."""
        rows = await self._session.rows(self._parts, run, view)
        return {day_of(day): DayParts.from_json(parts) for day, parts in rows if parts}

    async def day_cells(self, run: str, view: str, day: date) -> Mapping[str, bytes]:
        """The parts of a day, read at once: they lie in one partition."""
        pages = self._session.pages(self._day_cells, run, view, day, rows_at_once=PARTS_AT_ONCE)
        return {part: block async for page in pages for part, block in page}


class SpeedTables:
    """Implements `SpeedReader` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._positions = session.prepare(
            "SELECT topic, partition, position, received_at FROM speed_positions WHERE generation = ?"
        )
        self._progress = session.prepare(
            "SELECT store, mark, received_at, kept_from, kept_through FROM speed_stores WHERE generation = ?"
        )
        self._lag = session.prepare("SELECT oldest_at, measured_at FROM lag WHERE reader = 'speed'")
        self._claim = session.prepare("SELECT claimed, claimed_ends FROM generations WHERE generation = ?")
        self._definitions = session.prepare(SELECT_DEFINITIONS)
        self._layouts: LRUCache[int, SpeedLayout] = LRUCache(LAYOUTS_KEPT)
        own = "received_day = ? AND generation = ? AND epoch >= ?"
        self._rows = {
            table: session.prepare(
                f"SELECT epoch, block, micro_batch FROM {table} WHERE view_name = ? AND store = ? AND {own}"  # noqa: S608 - our own names
            )
            for table in CELL_TABLES
        }
        self._rows_of = {
            table: session.prepare(
                f"SELECT store, epoch, block, micro_batch FROM {table} WHERE view_name = ? AND store IN ? AND {own}"  # noqa: S608 - our own names
            )
            for table in CELL_TABLES
        }

    async def positions(self, generation: int) -> Sequence[Position]:
        """How far the generation has read each partition."""
        rows = await self._session.rows(self._positions, generation)
        return [Position(topic, number, at, optional_instant(read)) for topic, number, at, read in rows]

    async def progress(self, generation: int) -> GenerationProgress | None:
        """One read: the stores lie together. Before the first one there is a row without a store."""
        rows = await self._session.rows(self._progress, generation)
        if not rows or rows[0][-1] is None:
            return None
        stores = {
            store: StoreProgress(mark, optional_instant(received))
            for store, mark, received, *_ in rows
            if store is not None and mark is not None
        }
        *_, kept_from, kept_through = rows[0]
        return GenerationProgress(stores, kept_from, kept_through)

    async def read_through(self) -> datetime | None:
        """Of the partition that is furthest behind. Measured every few seconds, whether or not records arrive."""
        rows = await self._session.rows(self._lag)
        return min((instant_of(oldest or measured) for oldest, measured in rows), default=None)

    async def claim(self, generation: int) -> Claim | None:
        """The claim of the generation; None before its first one."""
        for micro_batch, ends in await self._session.rows(self._claim, generation):
            if micro_batch is not None:
                return Claim(micro_batch, claimed_ends(ends))
        return None

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        """Rows whose epoch is at or after the cut."""
        select = self._rows[(await self._layout(generation)).cells]
        rows = await self._session.rows(select, view, store, received_day, generation, cut)
        return [SpeedBlock(instant_of(epoch), block, micro_batch) for epoch, block, micro_batch in rows]

    async def rows_of(
        self, view: str, stores: Sequence[str], received_day: date, generation: int, cut: datetime
    ) -> Mapping[str, Sequence[SpeedBlock]]:
        """One statement; the node that gets it reads the partition of each store."""
        found: dict[str, list[SpeedBlock]] = {}
        select = self._rows_of[(await self._layout(generation)).cells]
        rows = await self._session.rows(select, view, stores, received_day, generation, cut)
        for store, epoch, block, micro_batch in rows:
            found.setdefault(store, []).append(SpeedBlock(instant_of(epoch), block, micro_batch))
        return found

    async def _layout(self, generation: int) -> SpeedLayout:
        """It never changes, so it is read once. A generation is begun before the pointer names it."""
        if (known := self._layouts.get(generation)) is not None:
            return known
        rows = await self._session.rows(self._definitions, generation)
        if not rows:  # in the wrong table, there would be nothing
            message = f"Nothing says where the rows of generation {generation} of the speed layer are."
            raise CassandraUnavailableError(message, do="galatea speed restart")
        return self._layouts.setdefault(generation, SpeedLayout.to_read(generation, rows[0][0]))


class TopicTables:
    """TopicReader of `store/at_least.py`."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._ids = session.prepare("SELECT topic_ids FROM generations WHERE generation = ?")
        self._growths = session.prepare(
            "SELECT partitions_before, partitions, opens_at, is_open FROM partition_growths WHERE series = 'galatea'"
        )

    async def tags(self, generation: int) -> Mapping[str, str]:
        """Empty if an older release began the generation, and none of this one has written for it yet."""
        rows = await self._session.rows(self._ids, generation)
        ids: Mapping[str, str] = (rows[0][0] if rows else None) or {}
        return {topic: topic_tag(id_) for topic, id_ in ids.items()}

    async def openings(self) -> Sequence[Opening]:
        """The openings of partitions, in the order of the growths."""
        rows = await self._session.rows(self._growths)
        return [
            Opening(before, partitions, round(instant_of(at).timestamp() * 1000) if is_open else None)
            for before, partitions, at, is_open in rows
            if before is not None
        ]


class StoreTables:
    """Implements `StoreReader` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._version, self._stores = session.prepare(SELECT_VERSION), session.prepare(SELECT_STORES)
        self._former_version = session.prepare(SELECT_FORMER_VERSION)
        self._former_stores = session.prepare(SELECT_FORMER_STORES)

    async def version(self) -> str:
        """`0` until stores are loaded for the first time."""
        if current := await self._session.rows(self._version):
            return str(current[0][0])
        former = await self._session.rows(self._former_version)
        return str(former[0][0] if former else 0)

    async def stores(self) -> Sequence[Store]:
        """All of them; there are hundreds, not millions."""
        current = await self._session.rows(self._version)
        if not current:
            return [Store.from_json(body) for (body,) in await self._session.rows(self._former_stores)]
        version, count = current[0]
        bodies = await self._session.rows(self._stores, version)
        if len(bodies) != count:  # two more loads have replaced it meanwhile
            raise CassandraUnavailableError("The stores were changed while they were read.", do="Try again.")
        return [Store.from_json(body) for (body,) in bodies]
