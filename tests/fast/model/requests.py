"""Requests through the product's own serving code, with other things happening between their reads."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from master_dataset.errors import GalateaError
from serving_layer.store.cells import MergedCells
from serving_layer.store.readers import Claim, Position, PublicationEntry, Readers, SpeedBlock
from serving_layer.store.snapshot import ReadSnapshot, SnapshotReader
from tests.fast.model.facts import BEGUN, STORES, TIMINGS, Code
from tests.fast.model.rules import Rule
from tests.fast.model.serving import place_of
from views.control.generation import claimed_ends
from views.control.publication import Pointer, generation_of
from views.core.cut import month_of, seconds, utc
from views.core.local_time import Span

if TYPE_CHECKING:
    from tests.fast.model.oracle import Shown
    from tests.fast.model.world import World

_LOOP = asyncio.new_event_loop()
_DAY = timedelta(days=1)
_SPAN = Span(seconds(BEGUN - 6 * _DAY), seconds(BEGUN + 60 * _DAY))


class ModelTables:
    """The tables as serving reads them; `replica`: a pointer that one still shows."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.replica: Any = None

    async def pointer(self) -> Pointer:
        row = self.replica or self.world.tables.pointer
        cut, definitions = utc(row.current_cut), row.current_definitions
        generation = generation_of(row.current_generation, row.served_generation)
        return Pointer(row.current, cut, row.current_manifest, generation, definitions)

    async def manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        return self.world.batch.manifests[name]

    async def entry(self, number: int) -> PublicationEntry | None:
        return next((each for each in await self.history(number + 1, 1) if each.publication == number), None)

    async def history(self, before: int, limit: int) -> Sequence[PublicationEntry]:
        found = sorted((each for each in self.world.tables.history.items() if each[0] < before), reverse=True)
        return [PublicationEntry(number, row.cut, row.published_at, "", "") for number, row in found[:limit]]

    async def stores_of(self, run: str, view: str, month: date) -> Mapping[date, frozenset[str]]:
        days = self.world.batch.run_days[run, view]
        return {day: stores for day, stores in days.items() if month_of(day) == month}

    async def blocks(self, view: str, store: str, run: str, days: Sequence[date]) -> Mapping[date, str]:
        blocks = self.world.batch.blocks
        return {day: blocks[view, store, run, day] for day in days if (view, store, run, day) in blocks}

    async def positions(self, generation: int) -> Sequence[Position]:
        return self.world.serving.positions(generation)

    async def progress(self, _: int) -> None:
        """Whoever asks here sees every store."""

    async def read_through(self) -> None:
        """Likewise."""

    async def claim(self, generation: int) -> Claim | None:
        row = self.world.tables.generations.get(generation)
        if row is None or row.claimed is None:
            return None
        return Claim(row.claimed, claimed_ends(row.claimed_ends))

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        rows = self.world.speed.of(generation).rows.items()
        own = [
            (key, row) for key, row in rows if (key.shape, key.store) == (view, store) and row.until > self.world.now
        ]
        return [
            SpeedBlock(key.epoch, row.block, key.micro_batch if isinstance(key.micro_batch, int) else 0)
            for key, row in own
            if key.epoch >= cut and key.epoch.date() == received_day
        ]


class Requests:
    """One process that serves."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self._tables = ModelTables(world)
        self._readers = Readers(self._tables, self._tables, self._tables, None, None)  # type: ignore[arg-type]
        self._basis = self._basis_reader()
        self._cells = MergedCells(self._readers, TIMINGS.ttl)
        self._served = -1

    def _basis_reader(self) -> SnapshotReader:
        return SnapshotReader(self._readers, TIMINGS.ttl, lambda: self.world.now)

    def ask(self, meanwhile: Callable[[], None], replica: float | None) -> str:
        """One request, compared with what it may say at least and at most. `replica`: how old a pointer it shows."""
        world = self.world
        pointers = world.tables.pointers
        self._tables.replica = pointers[int(replica * len(pointers))] if replica is not None else None
        if not world.keeps(Rule.NEVER_BACK):
            self._basis = self._basis_reader()
        code = world.code
        try:
            basis = _LOOP.run_until_complete(self._basis.read(partial=False))
            self._tables.replica = None
            return self._read(code, basis, meanwhile)
        except GalateaError as refusal:
            return type(refusal).__name__

    def _read(self, code: Code, basis: ReadSnapshot, meanwhile: Callable[[], None]) -> str:
        world = self.world
        pointer = basis.pointer
        if pointer.publication < self._served:
            world.differs(f"a reader was shown publication {self._served}, and now {pointer.publication}")
        self._served = pointer.publication
        read = {at.partition: at.position for at in basis.positions}
        least, unsure = world.oracle.expected(pointer.cut, read, code.number), world.unsure(pointer)
        claim = _LOOP.run_until_complete(self._tables.claim(pointer.generation))
        is_complete = claim is not None and claim.last_complete(basis.positions) == claim.micro_batch
        settled = _LOOP.run_until_complete(self._cells.settled(basis))
        shown: Shown = {}
        for view in code.views:
            meanwhile()
            if not world.keeps(Rule.POINTER_ONCE):
                again = _LOOP.run_until_complete(self._basis_reader().read(partial=False))
                basis = replace(again, pointer=replace(again.pointer, manifest=pointer.manifest))
            for store in STORES:
                for cell in _LOOP.run_until_complete(self._cells.read(basis, view, {store: [_SPAN]}))[store][0]:
                    shown[place_of(view, store, cell.key)] = cell.merged  # type: ignore[assignment]
        ends = {part.number: len(part.records) for part in world.topic.parts}
        most = world.oracle.expected(pointer.cut, ends, code.number)
        world.comparisons += 1
        world.between(shown, least.cells, most.cells, unsure | world.unsure(pointer))
        first, second = (self._settled(code, basis, settled, meanwhile) for _ in range(2))
        _LOOP.run_until_complete(self._basis.refuse_ended(basis))
        if first != second:
            world.differs("a snapshot of complete micro-batches has changed while it was read")
        exact = least.cells if is_complete else None
        world.between(first, exact or {}, most.cells if exact is None else exact, unsure | world.unsure(pointer))
        return f"answered from publication {pointer.publication}"

    def _settled(self, code: Code, basis: ReadSnapshot, cells: MergedCells, meanwhile: Callable[[], None]) -> "Shown":
        """What the statements of a transaction read, one after the other."""
        shown: Shown = {}
        for view in code.views:
            meanwhile()
            for store in STORES:
                for cell in _LOOP.run_until_complete(cells.read(basis, view, {store: [_SPAN]}))[store][0]:
                    shown[place_of(view, store, cell.key)] = cell.merged  # type: ignore[assignment]
        return shown
