"""The speed layer in the model: micro-batches that crash and come again, generations, rows that expire."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from deploy.services.speed import begin, starting_offsets
from master_dataset.errors import GenerationReplacedError
from speed_layer.additions import AdditionKey, Cells
from speed_layer.contributions import shapes_of
from speed_layer.first_deliveries import Delivery, Identity, first_in_batch, settled
from speed_layer.first_deliveries import Place as MetAt
from tests.fast.model.facts import TIMINGS, TOPIC, Code, contributions, window_of
from tests.fast.model.rules import Rule
from tests.fast.model.topic import Record
from views.control.generation import Generation, Reached
from views.control.speed_layout import BY_VIEW, SpeedLayout
from views.core.cells import WAITING, CellKey, States, read_block, write_block
from views.core.cut import epoch_of

if TYPE_CHECKING:
    from tests.fast.model.adding import Given
    from tests.fast.model.world import World

LAYOUTS = BY_VIEW, SpeedLayout.for_stores(2)


class Crash(IntEnum):
    """Where a micro-batch ends too early."""

    WHILE_REMEMBERING = 0
    BEFORE_ROWS = 1
    BETWEEN_ROWS = 2
    BEFORE_POSITIONS = 3
    BETWEEN_POSITIONS = 4
    BEFORE_SWITCH = 5
    NEVER = 6


class CrashedError(Exception):
    """The process has ended."""


class RowKey(NamedTuple):
    """As in the table `speed_cells`, but for the generation."""

    shape: str
    store: str
    epoch: datetime
    micro_batch: object


class SpeedRow(NamedTuple):
    """A block, and its cells as they are read from it."""

    block: str
    cells: Cells
    until: datetime


@dataclass
class Kept:
    """What one generation has in Cassandra, each with when it expires."""

    places: dict[Identity, tuple[MetAt, datetime]] = field(default_factory=dict)
    rows: dict[RowKey, SpeedRow] = field(default_factory=dict)


class Planned(NamedTuple):
    """The offsets of a micro-batch, written down before it runs."""

    starts: dict[int, int]
    ends: dict[int, int]


@dataclass
class Driver:
    """One process and its checkpoint."""

    generation: Generation
    code: Code
    at: dict[int, int]
    number: int = 0
    claimed: int = -1
    planned: Planned | None = None
    taken_over: bool = False


class Speed:
    """The current driver, and the one before it, which may go on as long as it is not replaced."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.driver: Driver | None = None
        self.old: Driver | None = None
        self.kept: dict[int, Kept] = {}
        self.unfinished: dict[int, dict[int, int]] = {}
        """By generation, the ends of a micro-batch that has written rows and is not complete."""

    def of(self, generation: int) -> Kept:
        """What that generation has written."""
        return self.kept.setdefault(generation if self.world.keeps(Rule.OWN_ROWS) else 0, Kept())

    def begin(self) -> None:
        """Start without a checkpoint: another generation."""
        world = self.world
        self.old = self.driver
        known = world.partitions
        ends = {TOPIC: known.opened(world.topic.end_offsets(TOPIC))}
        layout = LAYOUTS[len(world.tables.generations) % 2]  # the pointer names either in a column of its own
        generation = begin(world.generations, ends, world.code.definitions, world.now, {}, layout=layout)
        before = TIMINGS.remembered if world.keeps(Rule.START_BEFORE) else TIMINGS.remembered * 0
        offsets = starting_offsets(generation.emit_from, world.topic, before, known)[TOPIC]  # type: ignore[arg-type]
        at = {part: max(0, offset) for part, offset in offsets.items()}
        self.driver = Driver(generation, world.code, {part: at[part] for part in range(self._readable(at))})

    def _readable(self, at: dict[int, int]) -> int:
        """How many partitions a driver may read that has come so far."""
        known = self.world.partitions
        return known.readable({TOPIC: at}, [TOPIC]) if self.world.keeps(Rule.OLD_ONES_FIRST) else known.open

    def restart(self) -> None:
        """Go on after a crash, if the checkpoint is of these definitions."""
        if self.driver is None or dict(self.driver.generation.definitions) != self.world.code.definitions:
            self.begin()

    def run(self, driver: Driver, most: dict[int, int], crash: Crash) -> bool:
        """One micro-batch of at most so many records of each partition. Whether there was one."""
        if driver.planned is None:
            driver.at = dict.fromkeys(range(self._readable(driver.at)), 0) | driver.at
        if driver.planned is None or not self.world.keeps(Rule.SAME_RANGE):
            ends = {part: min(at + most.get(part, 0), self._end(part)) for part, at in driver.at.items()}
            ends = {part: max(end, driver.at[part]) for part, end in ends.items()}
            if ends == driver.at:
                return False
            driver.planned = Planned(dict(driver.at), ends)
        try:
            self._write(driver, driver.planned, crash)
        except CrashedError:
            return True
        except GenerationReplacedError:
            self.driver = None if driver is self.driver else self.driver
            self.old = None if driver is self.old else self.old
            return False
        driver.at, driver.number, driver.planned = driver.planned.ends, driver.number + 1, None
        self.unfinished.pop(driver.generation.number, None)
        return True

    def _end(self, partition: int) -> int:
        part = self.world.topic.parts[partition]
        return part.stable if self.world.keeps(Rule.COMMITTED_ONLY) else len(part.records)

    def _write(self, driver: Driver, planned: Planned, crash: Crash) -> None:
        world, own = self.world, driver.generation
        if world.keeps(Rule.SAME_RANGE) or driver.claimed < driver.number:
            world.generations.claims.claim(own.number, driver.number, {TOPIC: planned.ends})
            driver.claimed = driver.number
        counted = self._counted(driver, list(self._records(planned)), crash)
        if crash == Crash.BEFORE_ROWS:
            raise CrashedError
        added = self._added(driver, counted)
        self.unfinished[own.number] = planned.ends
        until = world.now + TIMINGS.ttl
        shapes = shapes_of(driver.code.views)
        for number, (key, cells) in enumerate(added):
            if crash == Crash.BETWEEN_ROWS and number:
                raise CrashedError
            block = write_block(shapes[key.shape], cells)
            read = tuple(read_block(shapes[key.shape], block))
            batch: object = driver.number if world.keeps(Rule.OVERWRITTEN) else object()
            self.of(own.number).rows[RowKey(key.shape, key.store, key.epoch, batch)] = SpeedRow(block, read, until)
        if crash in {Crash.BEFORE_POSITIONS, Crash.BETWEEN_ROWS}:
            raise CrashedError
        reached = list(self._reached(planned))
        for number, each in enumerate(reached):
            if crash == Crash.BETWEEN_POSITIONS and number:
                raise CrashedError
            world.generations.record(own.number, [each])
        if crash == Crash.BETWEEN_POSITIONS:
            raise CrashedError
        if not driver.taken_over:
            driver.taken_over = self._take_over(own, crash)

    def _take_over(self, own: Generation, crash: Crash) -> bool:
        world = self.world
        pointer = world.pointer.read()
        if own.emit_from > pointer.cut and world.keeps(Rule.ROLLBACK_COVERED):
            return False
        definitions = own.definitions if world.keeps(Rule.TAKE_OVER_SAME) else pointer.definitions or own.definitions
        if crash == Crash.BEFORE_SWITCH and world.generations.has_caught_up(own, pointer.generation):
            raise CrashedError
        return world.generations.take_over(replace(own, definitions=definitions))

    def _records(self, planned: Planned) -> Iterator[Record]:
        dirty, any_time = not self.world.keeps(Rule.COMMITTED_ONLY), not self.world.keeps(Rule.FUTURE)
        for part, start in planned.starts.items():
            for record in self.world.topic.parts[part].records[start : planned.ends[part]]:
                if record.fact and (record.is_event or any_time) and (record.is_visible or dirty):
                    yield record

    def _reached(self, planned: Planned) -> Iterator[Reached]:
        for part, start in planned.starts.items():
            end = planned.ends[part]
            records = self.world.topic.parts[part].records[start:end]
            given = [each for each in records if each.is_visible or not self.world.keeps(Rule.COMMITTED_ONLY)]
            yield Reached(TOPIC, part, end, given[-1].received_at if given else None)

    def _counted(self, driver: Driver, records: list[Record], crash: Crash) -> list[Record]:
        """The old ones, which wait, and the first deliveries of the young ones."""
        world = self.world
        old = [each for each in records if world.is_old(each)]
        young = [each for each in records if not world.is_old(each)]
        deliveries = [_delivery(each) for each in young]
        places = self.of(driver.generation.number).places
        known = {
            of: place
            for of, (place, until) in places.items()
            if until > world.now and world.keeps(Rule.PLACES_REMEMBERED)
        }
        firsts, own = settled(first_in_batch(deliveries), known)
        is_alive = TIMINGS.ttl + TIMINGS.remembered if world.keeps(Rule.PLACES_LIVE) else TIMINGS.oldest / 2
        for number, each in enumerate(own):
            if crash == Crash.WHILE_REMEMBERING and number:
                raise CrashedError
            places[each.of] = (each.place, world.now + is_alive)
        if crash == Crash.WHILE_REMEMBERING:
            raise CrashedError
        if not world.keeps(Rule.FIRST_IN_BATCH):
            return old + [each for each in young if _delivery(each).of not in known or _is_first(each, firsts)]
        if not world.keeps(Rule.FIRST_BY_PLACE):
            return old + [each for each in young if _delivery(each).of not in known and _is_first(each, firsts)]
        return old + [each for each in young if _is_first(each, firsts)]

    def _added(self, driver: Driver, counted: list[Record]) -> list[tuple[AdditionKey, Cells]]:
        shapes = shapes_of(driver.code.views)
        add = self.world.additions
        last = max((self._epoch(each) for each in counted), default=self.world.now)
        by_event = self.world.keeps(Rule.EPOCH_OF_EVENT)
        given: list[Given] = [
            (each, self._epoch(each) if by_event else last, self._given(driver.code, each)) for each in counted
        ]
        return [(key, cells) for key, cells in add(given, shapes) if key.epoch >= driver.generation.emit_from]

    def _epoch(self, record: Record) -> datetime:
        if self.world.keeps(Rule.RECEIPT_TIME):
            return epoch_of(record.received_at, TIMINGS.epoch)
        assert record.fact is not None
        return epoch_of(record.fact.happened_at, TIMINGS.epoch)

    def _given(self, code: Code, record: Record) -> list[tuple[str, CellKey, States]]:
        fact = record.fact
        assert fact is not None
        if not self.world.is_old(record):
            return [(view.name, key, states) for view, key, states in contributions(code, fact)]
        if not self.world.keeps(Rule.WAITING_COUNTED):
            return []
        return [(WAITING.name, CellKey(window_of(fact.happened_at), (TOPIC,)), (1,))]


def _delivery(record: Record) -> Delivery:
    fact = record.fact
    assert fact is not None
    place = (record.partition, record.offset, record.received_at)
    return Delivery(TOPIC, fact.store, fact.happened_at.date(), fact.identity, *place)


def _is_first(record: Record, firsts: dict[Identity, MetAt]) -> bool:
    delivery = _delivery(record)
    return firsts[delivery.of] == delivery.place
