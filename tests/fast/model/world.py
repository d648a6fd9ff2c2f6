"""The parts of one world, what time it is there, and the comparison after every step."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from master_dataset.errors import GalateaError
from master_dataset.kafka.growth import Partitions
from serving_layer.errors import CellMissingError
from serving_layer.store.snapshot import is_expired
from tests.fast.model.adding import added
from tests.fast.model.archive import Archive, Row
from tests.fast.model.batch import Batch
from tests.fast.model.facts import BEGUN, CODES, PARTITIONS, TIMINGS, TOPIC, Fact
from tests.fast.model.oracle import Oracle, Place, Shown, cell_window
from tests.fast.model.replacing import generations_without
from tests.fast.model.requests import Requests
from tests.fast.model.rules import Rule
from tests.fast.model.serving import Serving
from tests.fast.model.speed import Speed
from tests.fast.model.tables import Tables
from tests.fast.model.topic import Record, Topic
from views.control.publication import Pointer, PointerRow, Publication
from views.core.view import View


class DifferentError(Exception):
    """The merged answer is not what it has to be."""


class World:
    """`without`: the rule that does not hold here."""

    def __init__(self, without: Rule | None = None) -> None:
        self.without = without
        self.now = BEGUN
        self.code = CODES[0]
        self.facts: list[Fact] = []
        self.topic = Topic()
        self.partitions = Partitions(PARTITIONS)
        self.is_settled = False
        """Whether every sender knows the partitions that were added."""
        self.tables = Tables(compare=self.keeps(Rule.COMPARE_AND_SET))
        self.pointer = PointerRow(self.tables)
        self.pointer.begin(self.now)
        self.generations = generations_without(without, self.tables)
        dirty, any_time = not self.keeps(Rule.COMMITTED_ONLY), not self.keeps(Rule.FUTURE)
        self.archive = Archive(self.topic, dirty, any_time)
        oldest = self.oldest if self.keeps(Rule.AGE) else timedelta.max
        self.oracle = Oracle(self.topic, any_time=any_time, oldest=oldest)
        self.speed = Speed(self)
        self.batch = Batch(self)
        self.serving = Serving(self)
        self.additions = added
        self.requests = Requests(self)
        self.switched_at = self.now
        self.before: Pointer | None = None
        """What the second view is still read by, where views are not switched at once."""
        self.has_lost = False
        """Whether Cassandra has lost a block."""
        self.comparisons = 0
        self._seen: Shown = {}
        self._seen_by: object = None
        self._unsure_before: set[tuple[str, int]] = set()
        self._publication = -1

    def keeps(self, rule: Rule) -> bool:
        """Whether the rule holds."""
        return rule is not self.without

    def differs(self, why: str) -> None:
        """End the history."""
        raise DifferentError(why)

    @property
    def oldest(self) -> timedelta:
        """A."""
        return TIMINGS.oldest if self.keeps(Rule.AGE_BELOW_HORIZON) else TIMINGS.remembered

    def is_old(self, record: Record) -> bool:
        """Whether speed leaves it to batch."""
        assert record.fact is not None
        return self.keeps(Rule.AGE) and record.received_at - record.fact.happened_at > self.oldest

    def is_before(self, record: Record, cut: datetime) -> bool:
        """Whether it is on batch's side of the cut."""
        assert record.fact is not None
        return (record.received_at if self.keeps(Rule.RECEIPT_TIME) else record.fact.happened_at) < cut

    def firsts(self, rows: Iterable[Row]) -> list[Row]:
        """The first delivery of each event, as batch finds it."""
        homes: dict[tuple[str, int], Row] = {}
        first = "offset" if self.keeps(Rule.FIRST_BY_OFFSET) else "received_at"
        for row in sorted(rows, key=lambda row: getattr(row.record, first)):
            homes.setdefault((row.fact.identity, row.record.partition), row)
        found: dict[str, Row] = {}
        for row in sorted(homes.values(), key=lambda row: (row.record.received_at, row.record.partition)):
            found.setdefault(row.fact.identity, row)
        return list(found.values())

    def is_expired(self, pointer: Pointer) -> bool:
        """As serving judges it."""
        return is_expired(pointer.cut if pointer.publication else BEGUN, self.now, TIMINGS.ttl)

    def pointer_of(self, view: View, pointer: Pointer) -> Pointer:
        """What the view is read by."""
        second = self.code.views[1].name
        return self.before if self.before is not None and view.name == second else pointer

    def published(self, new: Publication) -> None:
        """Readers have been switched."""
        self.switched_at = self.now
        self._publication, before = new.number, self._publication
        if new.number <= before:
            self.differs(f"publication {new.number} came after {before}")

    def compare(self) -> None:
        """The merged answer with the naive recompute. DifferentError."""
        pointer = self.pointer.read()
        try:
            shown, waiting = self.serving.answer(self.code, pointer)
        except CellMissingError as missing:
            if not self.has_lost:
                raise DifferentError("a named cell is absent") from missing
            return
        except GalateaError:
            return
        self.comparisons += 1
        read = {at.partition: at.position for at in self.serving.positions(pointer.generation)}
        unsure = self.unsure(pointer)
        due = self.oracle.expected(pointer.cut, read, self.code.number)
        ends = self.speed.unfinished.get(pointer.generation)
        if ends is None:
            _same(shown, due.cells, unsure)
            if waiting != due.waiting:
                self.differs(f"{waiting} events wait, but {due.waiting} should")
        else:
            most = self.oracle.expected(pointer.cut, {**read, **ends}, self.code.number)
            self.between(shown, due.cells, most.cells, unsure)
            if not due.waiting <= waiting <= most.waiting:
                self.differs(f"{waiting} events wait, but {due.waiting} to {most.waiting} should")
        self._never_less(shown, unsure)

    def _never_less(self, shown: Shown, unsure: set[tuple[str, int]]) -> None:
        by = (self.code.number, self._rolled_back)
        if by == self._seen_by:
            for place, numbers in self._seen.items():
                where = (place.store, place.window)
                if where in unsure or where in self._unsure_before:
                    continue
                if shown.get(place, (0,))[0] < numbers[0]:
                    self.differs(f"{_said(place)} shrinks from {numbers} to {shown.get(place)}")
        # Such an event speed may show at once; it vanishes, and is counted as waiting, where a cut lies in between.
        again = {(fact.store, cell_window(fact)) for fact in self.oracle.young_again()}
        self._seen, self._seen_by, self._unsure_before = shown, by, unsure | again

    _rolled_back = 0

    def rolled_back(self) -> None:
        """From now on answers may be smaller than before."""
        self._rolled_back += 1

    def unsure(self, pointer: Pointer) -> set[tuple[str, int]]:
        """Store and window of what is alarmed, and may be wrong until the next publication.

        An event in two partitions (`miskeyed`), and one stamped below a published cut (`clock_stepped_back`).
        """
        published = self.tables.history[pointer.publication].master_versions.get(TOPIC, -1)
        found = set()
        for deliveries in self.oracle.deliveries().values():
            miskeyed = self._is_miskeyed(deliveries) and self.keeps(Rule.ONE_HOME)
            for record in deliveries:
                if not miskeyed and not record.stepped:
                    continue
                version = self.archive.version_of(record)
                is_behind = version is None or version > published
                if is_behind if not miskeyed else is_behind or record.received_at >= pointer.cut:
                    fact = record.fact
                    assert fact is not None
                    found.add((fact.store, cell_window(fact)))
        return found

    def _is_miskeyed(self, deliveries: list[Record]) -> bool:
        """In two partitions, although the store did not move; or in an old one after it had moved."""
        homes = {each.partition for each in deliveries}
        if len({partition % PARTITIONS for partition in homes}) > 1:
            return True
        fences = self.partitions.growths[0].fences.get(TOPIC, {}) if self.partitions.growths else {}
        return len(homes) > 1 and any(each.offset > fences.get(each.partition, each.offset) for each in deliveries)

    @staticmethod
    def between(shown: Shown, least: Shown, most: Shown, unsure: set[tuple[str, int]]) -> None:
        """DifferentError unless every count and total is at least and at most so much."""
        for place in {*shown, *least}:
            if (place.store, place.window) in unsure:
                continue
            low, is_, high = (each.get(place, (0, 0))[:2] for each in (least, shown, most))
            if not all(a <= b <= c for a, b, c in zip(low, is_, high, strict=False)):
                raise DifferentError(f"{_said(place)}: {is_}, expected between {low} and {high}")

    def pass_time(self, span: timedelta) -> None:
        """The clock of everybody but the brokers."""
        self.now += span


def _same(shown: Shown, due: Shown, unsure: set[tuple[str, int]]) -> None:
    if shown == due:
        return
    for place in sorted({*shown, *due}, key=str):
        if shown.get(place) != due.get(place) and (place.store, place.window) not in unsure:
            raise DifferentError(f"{_said(place)}: {shown.get(place)}, expected {due.get(place)}")


def _said(place: Place) -> str:
    kind = f", {place.kind}" if place.kind else ""
    return f"{place.view} of store {place.store}, window {place.window}{kind}"
