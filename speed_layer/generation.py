"""One continuous life of the speed layer's rows (R9). The checkpoint can be deleted at any time.

A new generation reads from (the published cut - D), so that it knows what was received before; writes rows of epochs
from `emit_from` on, its cut at the start; and takes over only when it has read the markers that were written at its
start, behind everything that the old one had read. So an answer never shrinks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from master_dataset.errors import CheckpointOutOfStep
from views.core.cut import utc
from views.core.pointer_row import PointerRow
from views.core.publication import Pointer

if TYPE_CHECKING:
    from cassandra.cluster import Session

Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset: everything before it."""


class Reached(NamedTuple):
    """How far a partition was read: everything before `position`, the last of it received at `received_at`."""

    topic: str
    partition: int
    position: int
    received_at: datetime


@dataclass(frozen=True)
class Generation:
    """`targets`: the positions that it must have written before it may take over. `definitions`: view to hash."""

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
        self._reached = session.prepare(
            "INSERT INTO speed_positions (generation, topic, partition, position, received_at, micro_batch) "
            "VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
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
        """Write the generation down before its first row."""
        insert = self._session.prepare(
            "INSERT INTO generations (generation, emit_from, started_at, definitions, targets) "
            "VALUES (?, ?, ?, ?, ?) IF NOT EXISTS"
        )
        targets = {topic: {str(n): at for n, at in own.items()} for topic, own in generation.targets.items()}
        values = (generation.number, generation.emit_from, started_at, dict(generation.definitions))
        self._session.execute(insert, (*values, orjson.dumps(targets).decode()))

    def greatest(self) -> int:
        """The greatest number in use; 0 before the first generation."""
        return max((row.generation for row in self._session.execute("SELECT generation FROM generations")), default=0)

    def positions(self, number: int) -> dict[str, dict[int, int]]:
        """How far this generation has written."""
        found: dict[str, dict[int, int]] = {}
        for row in self._recorded(number):
            found.setdefault(row.topic, {})[row.partition] = row.position
        return found

    def record(self, number: int, reached: Reached, micro_batch: int) -> None:
        """Every row of events before the position is written. It is the write timestamp, so it never goes back."""
        self._session.execute(self._reached, (number, *reached, micro_batch, reached.position))

    def complete(self, number: int, micro_batch: int) -> None:
        """Everything of this micro-batch is written. Its number is the write timestamp: it never goes back."""
        update = self._session.prepare("UPDATE generations USING TIMESTAMP ? SET completed = ? WHERE generation = ?")
        self._session.execute(update, (micro_batch + 1, micro_batch, number))

    def refuse_out_of_step(self, number: int, micro_batch: int) -> None:
        """CheckpointOutOfStep unless the last micro-batch is repeated or followed by the next one."""
        query = self._session.prepare("SELECT completed FROM generations WHERE generation = ?")
        row = self._session.execute(query, (number,)).one()
        last = -1 if row is None or row.completed is None else row.completed
        if micro_batch not in {last, last + 1}:
            raise _out_of_step(number, f"is about to write micro-batch {micro_batch} and has completed {last}")

    def refuse_other_end(self, number: int, micro_batch: int, reached: Iterable[Reached]) -> None:
        """CheckpointOutOfStep if a micro-batch of that number had read to other places than these."""
        now = {(each.topic, each.partition): each.position for each in reached}
        for row in self._recorded(number):
            place = (row.topic, row.partition)
            if row.micro_batch == micro_batch and now.get(place) != row.position:
                message = f"read `{row.topic}/{row.partition}` to {now.get(place)} as micro-batch {micro_batch}"
                raise _out_of_step(number, f"{message}, which had ended at {row.position}")

    def _recorded(self, number: int) -> list[Any]:
        query = "SELECT topic, partition, position, micro_batch FROM speed_positions WHERE generation = ?"
        return list(self._session.execute(self._session.prepare(query), (number,)))

    def take_over(self, generation: Generation) -> bool:
        """Point readers at this generation if it has reached its targets and the pointer has not moved meanwhile.

        Other definitions than the published ones wait for the next rebuild, which publishes both together (R12).
        """
        pointer = self._pointer.read()
        same = dict(pointer.definitions) == dict(generation.definitions)
        if pointer.publication and not same:
            return False
        if not reached(self.positions(generation.number), generation.targets):
            return False
        if pointer.generation >= generation.number:
            return True
        return self._pointer.switch_generation(pointer, generation.number, generation.definitions)

    def pointer(self) -> Pointer:
        """What is published now."""
        return self._pointer.read()


def reached(positions: Offsets, targets: Offsets) -> bool:
    """Whether the positions are at or behind every target; a target of 0 needs no position."""
    return all(positions.get(topic, {}).get(partition, 0) >= offset for topic, partition, offset in _places(targets))


def _places(offsets: Offsets) -> Iterator[tuple[str, int, int]]:
    return ((topic, partition, offset) for topic, own in offsets.items() for partition, offset in own.items())


def _out_of_step(number: int, what: str) -> CheckpointOutOfStep:
    do = "end the second speed process; without one: galatea down, remove `checkpoints/speed` in the home, galatea up"
    return CheckpointOutOfStep(f"generation {number} of the speed layer {what}", do=do)
