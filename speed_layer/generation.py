"""One continuous life of the speed layer's state and rows (R9). The checkpoint can be deleted at any time.

A new generation reads from (the published cut - D), so that it knows what was received before; writes rows of epochs
from `emit_from` on, its cut at the start; and takes over only when it has read as far as the old one had, or without
an old one as far as the topics reached at its start. So an answer never shrinks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import orjson

from views.core.cut import utc
from views.core.pointer_row import PointerRow
from views.core.publication import Pointer

if TYPE_CHECKING:
    from cassandra.cluster import Session

Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset: everything before it."""


@dataclass(frozen=True)
class Generation:
    """`targets`: the positions that it must have written before it may take over. `definitions`: view to hash."""

    number: int
    emit_from: datetime
    delay: timedelta
    definitions: Mapping[str, str]
    targets: Offsets


class Generations:
    """The generations as Cassandra keeps them."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._pointer = PointerRow(session)
        self._reached = session.prepare(
            "INSERT INTO speed_positions (generation, topic, partition, position, received_at) "
            "VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?"
        )

    def find(self, number: int) -> Generation | None:
        """The generation of that number, if it was ever begun."""
        query = self._session.prepare("SELECT * FROM generations WHERE generation = ?")
        row = self._session.execute(query, (number,)).one()
        if row is None:
            return None
        targets = {topic: {int(n): at for n, at in own.items()} for topic, own in orjson.loads(row.targets).items()}
        delay = timedelta(seconds=row.watermark_seconds)
        return Generation(number, utc(row.emit_from), delay, dict(row.definitions or {}), targets)

    def begin(self, generation: Generation, started_at: datetime) -> None:
        """Write the generation down before its first row."""
        insert = self._session.prepare(
            "INSERT INTO generations (generation, emit_from, started_at, watermark_seconds, definitions, targets) "
            "VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS"
        )
        targets = {topic: {str(n): at for n, at in own.items()} for topic, own in generation.targets.items()}
        seconds = int(generation.delay.total_seconds())
        values = (generation.number, generation.emit_from, started_at, seconds, dict(generation.definitions))
        self._session.execute(insert, (*values, orjson.dumps(targets).decode()))

    def greatest(self) -> int:
        """The greatest number in use; 0 before the first generation."""
        return max((row.generation for row in self._session.execute("SELECT generation FROM generations")), default=0)

    def positions(self, number: int) -> dict[str, dict[int, int]]:
        """How far this generation has written."""
        query = self._session.prepare("SELECT topic, partition, position FROM speed_positions WHERE generation = ?")
        found: dict[str, dict[int, int]] = {}
        for row in self._session.execute(query, (number,)):
            found.setdefault(row.topic, {})[row.partition] = row.position
        return found

    def record(self, number: int, topic: str, partition: int, position: int, received_at: datetime) -> None:
        """Every row of events before `position` is written. The position is the write timestamp: it never goes back."""
        self._session.execute(self._reached, (number, topic, partition, position, received_at, position))

    def take_over(self, generation: Generation) -> bool:
        """Point readers at this generation if it has reached its targets and the pointer has not moved meanwhile."""
        if not reached(self.positions(generation.number), generation.targets):
            return False
        pointer = self._pointer.read()
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
