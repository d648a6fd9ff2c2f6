"""Generations of the speed layer's rows (R9), and the claims of their micro-batches.

A generation is one continuous set of speed rows; its checkpoint can be deleted at any time. A new generation reads
from (the published cut - D), so that it knows what was received before; writes rows of epochs from `emit_from` on, its
cut at the start; and takes over only when it has read as far as the old one can have written (if there is none, as far
as the topics reached at its start). So an answer never shrinks.

A driver claims each micro-batch by number and end offsets before its first row is written. If two drivers disagree, the
slower one is refused. A driver that was paused and resumes can only rewrite the rows that were claimed. A replaced
generation can claim nothing more, so it has written nothing beyond its last claim.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from master_dataset.errors import CheckpointOutOfStepError, GenerationReplacedError
from master_dataset.failpoints import Failpoint, failpoint
from views.control.publication import SERIAL, Pointer, PointerRow, Session
from views.control.speed_layout import BY_VIEW, SpeedLayout
from views.core.cut import utc

_RECEIVED = (
    "UPDATE speed_positions USING TIMESTAMP ? SET received_at = ?, position = ? "
    "WHERE generation = ? AND topic = ? AND partition = ?; "
)
_POSITION = (
    "UPDATE speed_positions USING TIMESTAMP ? SET position = ? WHERE generation = ? AND topic = ? AND partition = ?; "
)
_CLAIM = (
    "UPDATE generations SET claimed = ?, claimed_ends = ? WHERE generation = ? "
    "IF claimed = ? AND replaced = null AND emit_from != null"  # all columns of a missing generation are null
)


class Claims:
    """The claims of every generation."""

    def __init__(self, session: Session) -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def claim(self, number: int, micro_batch: int, ends: "Offsets") -> None:
        """Claim a micro-batch read up to `ends`: the next one of that generation, or its last one again.

        Raises:
            GenerationReplacedError: The generation may write nothing more.
            CheckpointOutOfStepError: Another micro-batch was claimed: the checkpoint or Cassandra was restored from a
                backup, or a second process runs with another checkpoint.
        """
        ends_json = orjson.dumps(ends, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS).decode()
        before = micro_batch - 1 if micro_batch else None
        claim = self._session.prepare(_CLAIM)
        if self._session.execute(claim, (micro_batch, ends_json, number, before)).one().applied:
            return
        found = self._state(number)
        if found is not None and found.claimed == micro_batch and found.claimed_ends == ends_json:
            return
        if found is not None and found.replaced:
            raise _replaced(number)
        last = f"{found.claimed} up to {found.claimed_ends}" if found is not None else "nothing"
        message = f"generation {number} of the speed layer is about to write micro-batch {micro_batch} after {last}"
        raise CheckpointOutOfStepError(
            message,
            do="end the second speed process; without one: galatea speed restart, galatea down, galatea up --detach",
        )

    def replace(self, number: int, wanted_from: datetime | None = None) -> "Offsets":
        """Stop that generation from writing; returns the offsets up to which it may have written. It stays readable.

        `wanted_from`: the cut from which the next one must write rows, if older than the published cut.
        """
        if wanted_from is None:
            update = self._session.prepare("UPDATE generations SET replaced = true WHERE generation = ? IF EXISTS")
            self._session.execute(update, (number,))
        else:
            update = self._session.prepare(
                "UPDATE generations SET replaced = true, wanted_from = ? WHERE generation = ? IF EXISTS"
            )
            self._session.execute(update, (wanted_from, number))
        failpoint(Failpoint.SPEED_REPLACED)
        return self.ends(number)

    def ends(self, number: int) -> "Offsets":
        """The offsets up to which that generation may have written."""
        found = self._state(number)
        return {} if found is None or found.claimed_ends is None else claimed_ends(found.claimed_ends)

    def claimed(self, number: int) -> "tuple[int, Offsets] | None":
        """The last micro-batch that was claimed, and its end offsets; None if none was."""
        found = self._state(number)
        return None if found is None or found.claimed is None else (found.claimed, claimed_ends(found.claimed_ends))

    def wanted_from(self, number: int) -> datetime | None:
        """The cut from which the next generation must write rows, if one was requested."""
        query = self._session.prepare("SELECT wanted_from FROM generations WHERE generation = ?")
        found = self._session.execute(query, (number,)).one()
        return utc(found.wanted_from) if found is not None and found.wanted_from else None

    def is_replaced(self, number: int) -> bool:
        """Whether that generation is known to have been replaced. Only `claim` is certain."""
        query = self._session.prepare("SELECT replaced FROM generations WHERE generation = ?")
        found = self._session.execute(query, (number,)).one()
        return found is not None and bool(found.replaced)

    def refuse_replaced(self, number: int) -> None:
        """Raise GenerationReplacedError if that generation is known to have been replaced."""
        if self.is_replaced(number):
            raise _replaced(number)

    def _state(self, number: int) -> Any:  # noqa: ANN401 - a driver's row
        """Read at SERIAL: a claim whose outcome was unknown is settled by it."""
        query = self._session.prepare("SELECT claimed, claimed_ends, replaced FROM generations WHERE generation = ?")
        query.consistency_level = SERIAL
        return self._session.execute(query, (number,)).one()


def _replaced(number: int) -> GenerationReplacedError:
    message = f"generation {number} of the speed layer was replaced and writes nothing more"
    return GenerationReplacedError(message, do="no action needed: its supervisor starts the next generation")


Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset: everything before it."""


def claimed_ends(text: str) -> Offsets:
    """The end offsets of a claim from its column."""
    return {topic: {int(n): at for n, at in own.items()} for topic, own in orjson.loads(text).items()}


class Reached(NamedTuple):
    """How far a partition was read: everything before `position`, and when its last record was received.

    None if the micro-batch had no record of the partition, only transaction markers.
    """

    topic: str
    partition: int
    position: int
    received_at: datetime | None


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        number: Greater than that of every one before.
        emit_from: It writes rows of epochs from then on.
        definitions: View to hash.
        targets: The positions it must have written before readers may switch to it.
        topic_ids: The topics whose offsets its positions are; one that is created again has another id. Empty if an
            older release began it.
        layout: Where its rows lie.
    """

    number: int
    emit_from: datetime
    definitions: Mapping[str, str]
    targets: Offsets
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    layout: SpeedLayout = BY_VIEW


class Generations:
    """The generations, in Cassandra."""

    def __init__(self, session: Session) -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._pointer = PointerRow(session)
        self.claims = Claims(session)

    def find(self, number: int) -> Generation | None:
        """The generation of that number; None if it was never started."""
        query = self._session.prepare("SELECT * FROM generations WHERE generation = ?")
        row = self._session.execute(query, (number,)).one()
        if row is None:
            return None
        targets = {topic: {int(n): at for n, at in own.items()} for topic, own in orjson.loads(row.targets).items()}
        layout, definitions = SpeedLayout.recorded_in(row.definitions)
        return Generation(number, utc(row.emit_from), definitions, targets, dict(row.topic_ids or {}), layout)

    def begin(self, generation: Generation, started_at: datetime) -> None:
        """Record the generation before its first row is written.

        GenerationReplacedError if another process was first.
        """
        insert = self._session.prepare(
            "INSERT INTO generations (generation, emit_from, started_at, definitions, targets, topic_ids) "
            "VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS"
        )
        targets = {topic: {str(n): at for n, at in own.items()} for topic, own in generation.targets.items()}
        definitions = generation.layout.recorded_with(generation.definitions)
        values = (generation.number, generation.emit_from, started_at, definitions)
        begun = (
            self._session.execute(insert, (*values, orjson.dumps(targets).decode(), dict(generation.topic_ids)))
            .one()
            .applied
        )
        if not begun and self.find(generation.number) != generation:
            message = f"generation {generation.number} of the speed layer was started by another process"
            raise GenerationReplacedError(message, do="end the second speed process")

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

        A partition that had no record keeps the time of its last one. All of them lie in one partition of the table
        and are one write, so a reader sees those of a micro-batch all or none. An answer from complete micro-batches
        therefore contains what the positions say, in every partition.
        """
        every = list(reached)
        received = [each for each in every if each.received_at is not None]
        others = [each for each in every if each.received_at is None]
        values = [
            *(value for at in received for value in (at.position, at.received_at, at.position, number, *at[:2])),
            *(value for at in others for value in (at.position, at.position, number, *at[:2])),
        ]
        if every:
            updates = _RECEIVED * len(received) + _POSITION * len(others)
            self._session.execute(self._session.prepare(f"BEGIN UNLOGGED BATCH {updates}APPLY BATCH"), values)

    def name_topics(self, number: int, topic_ids: Mapping[str, str]) -> None:
        """Record the topics of a generation that an older release began. Those of others stay as they are."""
        query = "UPDATE generations SET topic_ids = ? WHERE generation = ? IF topic_ids = null AND emit_from != null"
        self._session.execute(self._session.prepare(query), (dict(topic_ids), number))

    def has_caught_up(self, generation: Generation, served: int) -> bool:
        """Whether this generation can be read instead of the one `served` (0: none) without an answer shrinking.

        This stops the served one from writing, so it is done only once this one has come as far.
        """
        if not self.is_as_far(generation, served):
            return False
        return not served or reached(self.positions(generation.number), self.claims.replace(served))

    def is_as_far(self, generation: Generation, served: int) -> bool:
        """Whether it has read what the one `served` has recorded or, if there is none, its targets. Changes nothing."""
        targets = self.positions(served) if served else generation.targets
        return reached(self.positions(generation.number), targets)

    def progress(self, generation: Generation, served: int) -> tuple[int, int]:
        """How many of the records that it must read before it can take over it has read so far."""
        own = self.positions(generation.number)
        # Its claims end at its positions or later.
        targets = (self.claims.ends(served) or self.positions(served)) if served else generation.targets
        reached_and_target = [
            (own.get(topic, {}).get(partition, 0), target) for topic, partition, target in _partitions(targets)
        ]
        return sum(min(at, target) for at, target in reached_and_target), sum(
            target for _, target in reached_and_target
        )

    def take_over(self, generation: Generation) -> bool:
        """Point readers at this generation if it has caught up and the pointer has not moved meanwhile.

        If the definitions differ from the published ones, it waits for the next rebuild, which publishes both together
        (R12).
        """
        pointer = self._pointer.read()
        same = dict(pointer.definitions) == dict(generation.definitions)
        if pointer.publication and not same:
            return False
        if pointer.generation >= generation.number:
            return True
        if generation.emit_from > pointer.cut:  # after a rollback: another generation must start
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
    return all(
        positions.get(topic, {}).get(partition, 0) >= offset for topic, partition, offset in _partitions(targets)
    )


def _partitions(offsets: Offsets) -> Iterator[tuple[str, int, int]]:
    return ((topic, partition, offset) for topic, own in offsets.items() for partition, offset in own.items())
