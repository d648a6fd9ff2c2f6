"""A world with shops, deliveries and publications, kept as the tables would keep them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from batch_layer.day_cells import DayCells, PartBuffer, calendar_of
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.admin.ledger import Ledger
from serving_layer.store.readers import PublicationEntry, SpeedBlock
from tests.support.layers import Delivery, batch_cells, speed_firsts, speed_rows, waiting_rows
from views.control.publication import Pointer
from views.core import States, View
from views.core.cells import WAITING, CellKey, write_block
from views.core.cut import UNIX_EPOCH, instant
from views.core.day_cells import DayParts, DayShape
from views.registry import registered_views

if TYPE_CHECKING:
    from master_dataset.source import Source
    from serving_layer.admin.publications import RecomputeRecord

_DayBlocks = dict[date, dict[str, bytes]]
"""Per day, its blocks by name."""
_AddedUp = tuple[dict[date, DayParts], _DayBlocks]


def at(text: str | datetime) -> datetime:
    """An instant from its text."""
    return text if isinstance(text, datetime) else datetime.fromisoformat(text).astimezone(UTC)


class World:
    """`receive` and `rebuild` are what happens; the rest is what may be read."""

    def __init__(self, *stores: Store, epoch: timedelta = timedelta(minutes=5)) -> None:
        self.epoch = epoch
        self.stores = {store.id: store for store in stores or (Store(id="1", timezone="Europe/Bratislava"),)}
        self.deliveries: dict[str, list[Delivery]] = {}
        self._speed_blocks: dict[str, tuple[list[Delivery], list[tuple[str, SpeedBlock]]]] = {}
        self.micro_batch = 0
        self.speed_as_of: datetime | None = None
        self._clock = UNIX_EPOCH
        self.definitions = {view.name: view.definition_hash for view in registered_views()}
        self.pointer = Pointer(0, UNIX_EPOCH, "", 1, self.definitions)
        self.history = [PublicationEntry(0, UNIX_EPOCH, None, "world", "the beginning")]
        self.manifests: dict[str, dict[tuple[str, date], str]] = {"": {}}
        self.run_days: dict[tuple[str, str], dict[date, frozenset[str]]] = {}
        self.blocks: dict[tuple[str, str, str, date], str] = {}
        self._days: dict[tuple[str, str], Callable[[], _AddedUp]] = {}
        self._adding_up = Lock()
        self.ledgers: dict[str, Ledger] = {}
        self.corrections: dict[tuple[str, str], dict[tuple[str, date], str]] = {}
        self.recomputes: dict[str, RecomputeRecord] = {}

    def receive(self, value: bytes, received_at: str | datetime, source: "Source[Any]" = POS_TRANSACTIONS) -> None:
        """One delivery, by the real parser. The broker's stamps never step back here."""
        stamp = at(received_at)
        event = parse(source, value, self._terms_of, received_us=int(stamp.timestamp() * 1_000_000))
        assert isinstance(event, Event), event
        self.deliveries.setdefault(event.store, []).append(Delivery(event, stamp, value, self.micro_batch))
        self.speed_as_of = max(stamp, self.speed_as_of or stamp)

    def begin_micro_batch(self) -> None:
        """What is received from now on is in the next micro-batch. The one before is complete."""
        self.micro_batch += 1

    @property
    def sent(self) -> int:
        """How many deliveries there are."""
        return sum(map(len, self.deliveries.values()))

    def speed_blocks(self, store: str) -> Sequence[tuple[str, SpeedBlock]]:
        """Speed's rows of a store with the names of their views: one for each view, epoch and micro-batch.

        Those of visits are all in the first micro-batch.
        """
        deliveries = list(self.of(store))
        known = self._speed_blocks.get(store)
        if known is None or known[0] != deliveries:
            known = self._speed_blocks[store] = deliveries, list(self._written_blocks(deliveries))
        return known[1]

    def _written_blocks(self, deliveries: Sequence[Delivery]) -> Iterator[tuple[str, SpeedBlock]]:
        for number in sorted({each.micro_batch for each in deliveries}):
            added = [each for each in speed_firsts(deliveries) if each.micro_batch == number]
            for view in registered_views():
                of_visits = deliveries if number == 0 else []
                rows = speed_rows(view, of_visits if view.counts_visits else added, self.epoch)
                for epoch, cells in rows.items():
                    yield view.name, SpeedBlock(epoch, write_block(view, list(cells.items())), number)
            for epoch, cells in waiting_rows(added, self.epoch).items():
                yield WAITING.name, SpeedBlock(epoch, write_block(WAITING, list(cells.items())), number)

    def pass_time(self, until: str | datetime) -> None:
        """Speed has read everything up to then, and there was nothing."""
        self.speed_as_of = max(at(until), self.speed_as_of or at(until))

    def stand_still(self, until: str | datetime) -> None:
        """Time passes, and speed reads nothing."""
        self._clock = at(until)

    def now(self) -> datetime:
        """What the clocks say."""
        return max(self._clock, self.speed_as_of or UNIX_EPOCH)

    def rebuild(self, cut: str | datetime) -> None:
        """Publish every view at this cut."""
        number = self.pointer.publication + 1
        run = f"run-{number}"
        manifest: dict[tuple[str, date], str] = {}
        for view in registered_views():
            days: dict[date, set[str]] = {}
            by_store: dict[str, dict[CellKey, States]] = {}
            for store, deliveries in self.deliveries.items():
                cells = by_store[store] = batch_cells(view, deliveries, at(cut), self.epoch)
                for day in {_day(key) for key in cells}:
                    block = [(key, states) for key, states in sorted(cells.items()) if _day(key) == day]
                    self.blocks[view.name, store, run, day] = write_block(view, block)
                    days.setdefault(day, set()).add(store)
            self.run_days[run, view.name] = {day: frozenset(of) for day, of in days.items()}
            self._days[run, view.name] = cache(partial(_add_up_days, view, run, by_store, days, dict(self.stores)))
            manifest |= {(view.name, day): run for day in days}
        self.manifests[run] = manifest
        self._publish(PublicationEntry(number, at(cut), at(cut), "world", "a test", run, self.definitions))
        self.pass_time(cut)

    def day_parts(self, run: str, view: str) -> dict[date, DayParts]:
        """The parts of each day."""
        return self._added_up(run, view)[0]

    def day_blocks(self, run: str, view: str, day: date) -> dict[str, bytes]:
        """The blocks of a day, by name."""
        return self._added_up(run, view)[1].get(day, {})

    def forget_days(self) -> None:
        """As if no publication had day cells."""
        self._days.clear()

    def _added_up(self, run: str, view: str) -> _AddedUp:
        """The days of a view are added up when they are first read: few tests read them."""
        with self._adding_up:
            add_up = self._days.get((run, view))
            return add_up() if add_up else ({}, {})

    def restore(self, number: int) -> None:
        """Publish again what an older publication said; it was at that publication's cut."""
        old = next(each for each in self.history if each.publication == number)
        again = replace(old, publication=self.pointer.publication + 1, why="restored", stats={"restores": number})
        self._publish(again)

    def collect(self, number: int) -> None:
        """Take away what only that publication names."""
        self.history = [
            replace(each, collected_at=self.now()) if each.publication == number else each for each in self.history
        ]
        run = f"run-{number}"
        self.manifests[run] = {}
        self.blocks = {place: block for place, block in self.blocks.items() if place[2] != run}

    def _publish(self, entry: PublicationEntry) -> None:
        self.history.insert(0, entry)
        base, generation = self.pointer.publication, self.pointer.generation
        self.pointer = Pointer(entry.publication, entry.cut, entry.manifest, generation, self.definitions)
        totals = {"cells": 0, "rows": 0, "causes": {}}
        number = str(entry.publication)
        self.ledgers[number] = Ledger(number, entry.manifest, base, self.now(), totals)

    def of(self, store: str) -> Sequence[Delivery]:
        """Everything delivered of one store, in order."""
        return self.deliveries.get(store, [])

    def _terms_of(self, store: str) -> Terms:
        known = self.stores.get(store)
        return known.terms if known else DEFAULT_TERMS


def _add_up_days(
    view: View,
    run: str,
    by_store: Mapping[str, Mapping[CellKey, States]],
    days: Mapping[date, set[str]],
    stores: Mapping[str, Store],
) -> _AddedUp:
    """As one worker of batch that has every store."""
    buffer, stored, blocks = PartBuffer(f"{run}-{view.name}"), dict[date, set[str]](), _DayBlocks()
    tables = [arrow_cells(view, store, cells) for store, cells in by_store.items() if cells]
    if tables:
        buffer.add(DayCells(DayShape.of(view), calendar_of(stores)).of(pa.concat_tables(tables).combine_chunks()))
    for day, name, packed, of in buffer.parts():
        blocks.setdefault(day, {})[name] = packed
        stored.setdefault(day, set()).update(of)
    parts = {
        day: DayParts(tuple(blocks.get(day, {})), tuple(sorted(of - stored.get(day, set()))))
        for day, of in days.items()
    }
    return parts, blocks


def arrow_cells(view: View, store: str, cells: Mapping[CellKey, States]) -> pa.Table:
    """Cells of a store as a worker of batch has them."""
    ordered = sorted(cells, key=lambda key: key.window)
    columns: dict[str, pa.Array] = {
        "store": pa.array([store] * len(ordered)),
        "day": pa.array([_day(key) for key in ordered], pa.date32()),
        "window": pa.array([key.window for key in ordered], pa.int64()),
    }
    for place, _ in enumerate(view.dimensions):
        columns[f"d{place}"] = pa.array([key.dimensions[place] for key in ordered], pa.string())
    for place, column in enumerate(view.columns.values()):
        kind = pa.string() if column.by == "union" else pa.int64()
        columns[f"s{place}"] = pa.array([cells[key][place] for key in ordered], kind)
    return pa.table(columns)


def _day(key: CellKey) -> date:
    return instant(key.window).date()
