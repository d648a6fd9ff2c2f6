"""Serving in the model: the product's own requests over the model's tables, and a short way to all cells at once."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from master_dataset.errors import SpeedExpiredError, SpeedUnavailableError
from serving_layer.errors import CellMissingError
from serving_layer.store.readers import Position
from serving_layer.store.snapshot import ReadSnapshot
from tests.fast.model.facts import TIMINGS, Code
from tests.fast.model.oracle import Place, Shown
from tests.fast.model.rules import Rule
from views.control.publication import Pointer
from views.core import States, View
from views.core.cells import WAITING, Addition, CellKey, number_of, read_block
from views.core.cut import is_fresh
from views.core.merge import merge_cells

if TYPE_CHECKING:
    from tests.fast.model.world import World


class Serving:
    """Answers about every store and window."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self._decoded: dict[str, tuple[tuple[CellKey, States], ...]] = {}

    def basis(self, pointer: Pointer) -> ReadSnapshot:
        """What an answer rests on. SpeedUnavailableError, SpeedExpiredError."""
        if not pointer.generation:
            raise SpeedUnavailableError("no generation", do="wait")
        basis = ReadSnapshot(pointer, tuple(sorted(self.positions(pointer.generation))), ())
        if self.world.keeps(Rule.EXPIRED) and self.world.is_expired(pointer):
            raise SpeedExpiredError("expired", do="galatea rebuild")
        return basis

    def positions(self, generation: int) -> list[Position]:
        """How far it has read."""
        rows = self.world.tables.positions.items()
        return [
            Position(topic, part, row.position, row.received_at) for (of, topic, part), row in rows if of == generation
        ]

    def answer(self, code: Code, pointer: Pointer) -> tuple[Shown, int]:
        """All cells of both views, and how many events wait. Raises what serving refuses with."""
        basis = self.basis(pointer)
        shown: Shown = {}
        speed = self.rows(basis)
        stores = sorted({fact.store for fact in self.world.facts})
        for view in code.views:
            own = replace(basis, pointer=self.world.pointer_of(view, pointer))
            if self.world.keeps(Rule.HASHES_APART):
                own.refuse_unpublished(view)
            for store in stores:
                batch = list(self._batch(own.pointer, view, store))
                for cell in self._merged(view, batch, speed.get((view.name, store), ()), own.pointer.cut):
                    shown[place_of(view, store, cell[0])] = cell[1]  # type: ignore[assignment]
        waiting = [row for (shape, _), rows in speed.items() if shape == WAITING.name for row in rows]
        return shown, sum(number_of(row.states) for row in waiting if self.waits(row.epoch, pointer.cut))

    def waits(self, epoch: datetime, cut: datetime) -> bool:
        """Whether what waits since that epoch is counted."""
        if self.world.keeps(Rule.WAITING_BY_EPOCH):
            return is_fresh(epoch, cut)
        return epoch >= self.world.switched_at

    def _merged(
        self, view: View, batch: Iterable[tuple[CellKey, States]], speed: Iterable[Addition], cut: datetime
    ) -> Iterator[tuple[CellKey, States]]:
        if not self.world.keeps(Rule.FRESH_FROM_CUT):
            speed = [row for row in speed if row.epoch != cut]
        return ((cell.key, cell.merged) for cell in merge_cells(view, batch, speed, cut))

    def _batch(self, pointer: Pointer, view: View, store: str) -> Iterator[tuple[CellKey, States]]:
        batch = self.world.batch
        for (name, day), run in batch.manifests[pointer.manifest].items():
            if name != view.name or store not in batch.run_days[run, name][day]:
                continue
            block = batch.blocks.get((name, store, run, day))
            if block is not None:
                yield from self._decode(view, block)
            elif self.world.keeps(Rule.CELL_MISSING):
                raise CellMissingError("absent", do="galatea rebuild")

    def _decode(self, view: View, block: str) -> tuple[tuple[CellKey, States], ...]:
        if block not in self._decoded:
            self._decoded[block] = tuple(read_block(view, block))
        return self._decoded[block]

    def rows(self, basis: ReadSnapshot) -> dict[tuple[str, str], list[Addition]]:
        """By shape and store, the rows that still live, of the days of receipt that are read."""
        days = set(basis.received_days(TIMINGS.ttl))
        found: dict[tuple[str, str], list[Addition]] = {}
        for key, row in self.world.speed.of(basis.pointer.generation).rows.items():
            if row.until > self.world.now and key.epoch.date() in days:
                of = found.setdefault((key.shape, key.store), [])
                of.extend(Addition(cell, key.epoch, states) for cell, states in row.cells)
        return found


def place_of(view: View, store: str, key: CellKey) -> Place:
    """The cell as the oracle names it."""
    return Place(view.name, store, key.window, key.dimensions[0] if key.dimensions else None)
