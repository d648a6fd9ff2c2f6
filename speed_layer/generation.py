"""One continuous life of the speed layer's rows (R9). The checkpoint can be deleted at any time.

A new generation reads from (the published cut - D), so that it knows what was received before; writes rows of epochs
from `emit_from` on, its cut at the start; and takes over only when it has read as far as the old one can have written,
or without an old one as far as the topics reached at its start. So an answer never shrinks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import orjson

from master_dataset.errors import GenerationReplaced
from speed_layer.claims import Claims
from views.control.pointer_row import PointerRow
from views.control.publication import Pointer
from views.core.cut import utc

if TYPE_CHECKING:
    from cassandra.cluster import Session

Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset: everything before it."""


class Reached(NamedTuple):
    """How far a partition was read: everything before `position`; when the last record of it was received.

    None if this micro-batch had no record of the partition, because only ends of transactions were passed.
    """

    topic: str
    partition: int
    position: int
    received_at: datetime | None


@dataclass(frozen=True)
class Generation:
    """`targets`: the positions that it must have written before readers may move to it. `definitions`: view to hash."""

    number: int
    emit_from: datetime
    definitions: Mapping[str, str]
    targets: Offsets


class Generations:
    """The generations as Cassandra keeps them."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._pointer = PointerRow(session)
        self.claims = Claims(session)
        self._position = session.prepare(
            "UPDATE speed_positions USING TIMESTAMP ? SET position = ? "
            "WHERE generation = ? AND topic = ? AND partition = ?"
        )
        self._received = session.prepare(
            "UPDATE speed_positions USING TIMESTAMP ? SET received_at = ?, position = ? "
            "WHERE generation = ? AND topic = ? AND partition = ?"
        )

    def find(self, number: int) -> Generation | None:
        """The generation of that number, if it was ever begun."""
        query = self._session.prepare("SELECT * FROM generations WHERE generation = ?")
        row = self._session.execute(query, (number,)).one()
        if row is None:
            return None
        targets = {topic: {int(n): at for n, at in own.items()} for topic, own in orjson.loads(row.targets).items()}
        return Generation(number, utc(row.emit_from), dict(row.definitions or {}), targets)

    def begin(self, generation: Generation, started_at: datetime) -> None:
        """Write the generation down before its first row. GenerationReplaced if another process was first."""
        insert = self._session.prepare(
            "INSERT INTO generations (generation, emit_from, started_at, definitions, targets) "
            "VALUES (?, ?, ?, ?, ?) IF NOT EXISTS"
        )
        targets = {topic: {str(n): at for n, at in own.items()} for topic, own in generation.targets.items()}
        values = (generation.number, generation.emit_from, started_at, dict(generation.definitions))
        begun = self._session.execute(insert, (*values, orjson.dumps(targets).decode())).one().applied
        if not begun and self.find(generation.number) != generation:
            message = f"generation {generation.number} of the speed layer was begun by another process"
            raise GenerationReplaced(message, do="end the second speed process")

    def greatest(self) -> int:
        """The greatest number in use; 0 before the first generation."""
        return max((row.generation for row in self._session.execute("SELECT generation FROM generations")), default=0)

    def positions(self, number: int) -> dict[str, dict[int, int]]:
        """How far this generation has written."""
        found: dict[str, dict[int, int]] = {}
        query = self._session.prepare("SELECT topic, partition, position FROM speed_positions WHERE generation = ?")
        for row in self._session.execute(query, (number,)):
            found.setdefault(row.topic, {})[row.partition] = row.position
        return found

    def record(self, number: int, reached: Iterable[Reached]) -> None:
        """Every row of events before the positions is written. A position is the write timestamp: none goes back.

        A partition that had no record keeps the time of its last one.
        """
        for topic, partition, position, received_at in reached:
            place = (number, topic, partition)
            if received_at is None:
                self._session.execute(self._position, (position, position, *place))
            else:
                self._session.execute(self._received, (position, received_at, position, *place))

    def has_caught_up(self, generation: Generation, served: int) -> bool:
        """Whether no answer shrinks if this generation is read instead of the one `served` (0: of none).

        From then on the one served writes nothing more, so it is asked to stop only when this one has come as far.
        """
        if not self.is_as_far(generation, served):
            return False
        return not served or reached(self.positions(generation.number), self.claims.replace(served))

    def is_as_far(self, generation: Generation, served: int) -> bool:
        """Whether it has read what the one `served` has recorded, or without one its targets. Changes nothing."""
        wanted = self.positions(served) if served else generation.targets
        return reached(self.positions(generation.number), wanted)

    def progress(self, generation: Generation, served: int) -> tuple[int, int]:
        """How many records it has read of those that it has to read before it may take over, as of now."""
        own = self.positions(generation.number)
        # What it has claimed ends where its positions do, or behind them.
        targets = (self.claims.ends(served) or self.positions(served)) if served else generation.targets
        wanted = [(own.get(topic, {}).get(partition, 0), target) for topic, partition, target in _places(targets)]
        return sum(min(at, target) for at, target in wanted), sum(target for _, target in wanted)

    def take_over(self, generation: Generation) -> bool:
        """Point readers at this generation if it has caught up and the pointer has not moved meanwhile.

        Other definitions than the published ones wait for the next rebuild, which publishes both together (R12).
        """
        pointer = self._pointer.read()
        same = dict(pointer.definitions) == dict(generation.definitions)
        if pointer.publication and not same:
            return False
        if pointer.generation >= generation.number:
            return True
        if generation.emit_from > pointer.cut:  # somebody rolled back meanwhile: another one has to begin
            self.claims.replace(generation.number)
            return False
        if not self.has_caught_up(generation, pointer.generation):
            return False
        return self._pointer.switch_generation(pointer, generation.number, generation.definitions)

    def pointer(self) -> Pointer:
        """What is published now."""
        return self._pointer.read()


def reached(positions: Offsets, targets: Offsets) -> bool:
    """Whether the positions are at or behind every target; a target of 0 needs no position."""
    return all(positions.get(topic, {}).get(partition, 0) >= offset for topic, partition, offset in _places(targets))


def _places(offsets: Offsets) -> Iterator[tuple[str, int, int]]:
    return ((topic, partition, offset) for topic, own in offsets.items() for partition, offset in own.items())
