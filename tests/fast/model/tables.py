"""Cassandra's part in the model: pointer, history and generations, under the product's own statements."""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from types import SimpleNamespace
from typing import Any

from cassandra import OperationTimedOut


class Outcome(Enum):
    """The outcome of the next publication, and whether it is reported."""

    REPORTED = "reported"
    DONE_BUT_UNKNOWN = "done, but the answer is lost"
    LOST = "lost, and no answer"


class Statement:
    """A prepared query."""

    def __init__(self, run: Callable[[Sequence[Any]], list[Any]]) -> None:
        self.run = run
        self.consistency_level = 0


class Rows:
    """The rows of an answer."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def one(self) -> Any:
        return self._rows[0] if self._rows else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


class Tables:
    """A session that knows the few statements of `PointerRow` and `Generations`."""

    def __init__(self, *, compare: bool = True) -> None:
        """`compare`: whether a publication is conditional, as it has to be."""
        self.compare = compare
        self.outcome = Outcome.REPORTED
        self.pointer: Any = None
        self.pointers: list[Any] = []
        """Every value that the pointer had."""
        self.history: dict[int, Any] = {}
        self.generations: dict[int, Any] = {}
        self.positions: dict[tuple[int, str, int], Any] = {}
        self._prepared: dict[str, Statement] = {}
        self._known = {
            "INSERT INTO publications": self._begin,
            "SELECT current,": lambda _: [self.pointer],
            "UPDATE publications SET current_gen": self._switch,
            "BEGIN BATCH": self._publish,
            "SELECT * FROM publications": lambda values: [self.history[n] for n in values if n in self.history],
            "INSERT INTO generations": self._insert_generation,
            "SELECT * FROM generations": self._generation,
            "SELECT definitions FROM generations": self._generation,
            "SELECT wanted_from FROM": self._generation,
            "SELECT claimed,": self._generation,
            "SELECT generation FROM generations": lambda _: list(self.generations.values()),
            "UPDATE generations SET claimed": self._claim,
            "UPDATE generations SET replaced": self._replace,
            "UPDATE speed_positions USING TIMESTAMP ? SET position": self._record,
            "UPDATE speed_positions USING TIMESTAMP ? SET received_at": self._receive,
            "SELECT topic, partition, position FROM": self._positions,
        }

    def prepare(self, query: str) -> Statement:
        if query not in self._prepared:
            [run] = [run for start, run in self._known.items() if query.startswith(start)] or [self._batch(query)]
            self._prepared[query] = Statement(run)
        return self._prepared[query]

    def _batch(self, query: str) -> Callable[[Sequence[Any]], list[Any]]:
        """All of its statements, or none."""
        body = query.removeprefix("BEGIN UNLOGGED BATCH ").removesuffix("APPLY BATCH")
        parts = [(self.prepare(each.strip()), each.count("?")) for each in body.split(";") if each.strip()]

        def run(values: Sequence[Any]) -> list[Any]:
            left = list(values)
            for statement, size in parts:
                statement.run(left[:size])
                del left[:size]
            return []

        return run

    def point(self, values: Sequence[Any]) -> None:
        """Change the pointer row."""
        self.pointer = _pointed(values)
        self.pointers.append(self.pointer)

    def execute(self, query: Any, parameters: Sequence[Any] | None = None) -> Rows:
        statement = self.prepare(query) if isinstance(query, str) else query
        return Rows(statement.run(parameters or ()))

    def _begin(self, values: Sequence[Any]) -> list[Any]:
        cut, _, now = values
        self.point((0, cut, "", 0, None, {}))
        self.history[0] = _entry((0, cut, "", 0, {}, now, "galatea", "nothing is published yet", {}, "{}"))
        return []

    def _switch(self, values: Sequence[Any]) -> list[Any]:
        *generation, definitions = values[:3]
        if applied := list(values[3:]) == self._compared():
            now = self.pointer
            self.point((now.current, now.current_cut, now.current_manifest, *generation, definitions))
        return [SimpleNamespace(applied=applied)]

    def _compared(self) -> list[Any]:
        """What a switch compares."""
        return [self.pointer.current, self.pointer.current_generation, self.pointer.served_generation]

    def _generation(self, values: Sequence[Any]) -> list[Any]:
        return [self.generations[number] for number in values if number in self.generations]

    def _publish(self, values: Sequence[Any]) -> list[Any]:
        pointed, seen, kept = values[:6], values[6:9], values[9:]
        outcome, self.outcome = self.outcome, Outcome.REPORTED
        applied = outcome is not Outcome.LOST and (list(seen) == self._compared() or not self.compare)
        if applied:
            self.point(pointed)
            self.history[kept[0]] = _entry(kept)
        if outcome is not Outcome.REPORTED:
            raise OperationTimedOut
        return [SimpleNamespace(applied=applied)]

    def _insert_generation(self, values: Sequence[Any]) -> list[Any]:
        number, emit_from, _, definitions, targets, topic_ids = values
        if number in self.generations:
            return [SimpleNamespace(applied=False)]
        self.generations[number] = SimpleNamespace(
            generation=number,
            emit_from=emit_from,
            definitions=definitions,
            targets=targets,
            topic_ids=topic_ids,
            claimed=None,
            claimed_ends=None,
            replaced=None,
            wanted_from=None,
        )
        return [SimpleNamespace(applied=True)]

    def _claim(self, values: Sequence[Any]) -> list[Any]:
        micro_batch, ends, number, before = values
        row = self.generations.get(number)
        if row is None or row.claimed != before or row.replaced:
            return [SimpleNamespace(applied=False)]
        row.claimed, row.claimed_ends = micro_batch, ends
        return [SimpleNamespace(applied=True)]

    def _replace(self, values: Sequence[Any]) -> list[Any]:
        if values[0] in self.generations:
            self.generations[values[0]].replaced = True
        return [SimpleNamespace(applied=values[0] in self.generations)]

    def _record(self, values: Sequence[Any]) -> list[Any]:
        _, position, *place = values
        row = self._position(*place)
        row.position = max(row.position, position)
        return []

    def _receive(self, values: Sequence[Any]) -> list[Any]:
        written_at, received_at, position, *place = values
        row = self._position(*place)
        row.position = max(row.position, position)
        if written_at >= row.written_at:
            row.written_at, row.received_at = written_at, received_at
        return []

    def _position(self, generation: int, topic: str, partition: int) -> Any:
        new = SimpleNamespace(topic=topic, partition=partition, position=0, received_at=None, written_at=-1)
        return self.positions.setdefault((generation, topic, partition), new)

    def _positions(self, values: Sequence[Any]) -> list[Any]:
        return [row for (generation, _, _), row in self.positions.items() if generation == values[0]]


def _pointed(values: Sequence[Any]) -> Any:
    names = (
        "current",
        "current_cut",
        "current_manifest",
        "current_generation",
        "served_generation",
        "current_definitions",
    )
    return SimpleNamespace(**dict(zip(names, values, strict=True)))


def _entry(values: Sequence[Any]) -> Any:
    names = (
        "publication",
        "cut",
        "manifest",
        "generation",
        "definitions",
        "published_at",
        "published_by",
        "why",
        "master_versions",
        "stats",
    )
    return SimpleNamespace(**dict(zip(names, values, strict=True)), collected_at=None)
