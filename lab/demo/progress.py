"""Progress of the demo: the bar of a long step, and how far the layers have read."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from deploy.console import ProgressSteps, is_terminal, print_message
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.errors import OperatorError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.topics import Topics
from views.control.generation import Generations

if TYPE_CHECKING:
    from cassandra.cluster import Session

LAYERS = ("archive", "speed")
PATIENCE_SECONDS = 300.0
Step = Callable[[int, int, str], None]
"""Called with (done, total, what is being worked on)."""


class Stage:
    """One long step: a bar with an estimate on a terminal, otherwise plain lines; and a line at the end."""

    def __init__(self, what: str) -> None:
        """`what`: name of the step."""
        self._what, self._steps = what, ProgressSteps(what, transient=True)
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        """Start."""
        self._steps.__enter__()
        if not is_terminal():
            print_message(f"  {self._what} ...")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Print how long it took."""
        self._steps.__exit__(kind, error, trace)
        if kind is None:
            print_message(f"  {self._what}: done in {time.monotonic() - self._began:.1f} s")

    def step(self, done: int, total: int, what: str) -> None:
        """Show `done` of `total` and what is being worked on."""
        self._steps.step(done, total, what)


class LayerProgress:
    """How far archive and speed have read one topic."""

    def __init__(self, session: "Session", kafka: KafkaConnection, topic: str) -> None:
        """`session` uses Galatea's keyspace."""
        self._topics, self._topic = Topics(kafka), topic
        self._archive, self._generations = ArchivePositions(session), Generations(session)

    def until_read(self, layer: str, step: Step) -> None:
        """Wait until this layer has read all records of the topic. Raises OperatorError if it makes no progress."""
        ends = self.ends()
        total, best, moved_at = sum(ends.values()), -1, time.monotonic()
        while True:
            done = self._done(layer, ends)
            step(done, total, "records")
            if done >= total:
                return
            if done > best:
                best, moved_at = done, time.monotonic()
            if time.monotonic() - moved_at > PATIENCE_SECONDS:
                message = f"{layer} has read {done:,} of {total:,} records and stands still"
                raise OperatorError(message, do=f"read logs/{layer}.log in the demo's home, or galatea doctor")
            time.sleep(0.25)

    def ends(self) -> Mapping[int, int]:
        """Return the current end offset of each partition."""
        return self._topics.end_offsets(self._topic)

    def has_read(self, ends: Mapping[int, int]) -> bool:
        """Whether both layers have read up to these offsets."""
        return all(self._done(layer, ends) >= sum(ends.values()) for layer in LAYERS)

    def _done(self, layer: str, ends: Mapping[int, int]) -> int:
        positions = self._positions(layer)
        return sum(min(positions.get(partition, 0), end) for partition, end in ends.items())

    def _positions(self, layer: str) -> Mapping[int, int]:
        if layer == "archive":
            return self._archive.read().get(self._topic, {})
        pointer = self._generations.pointer()
        return self._generations.positions(pointer.generation).get(self._topic, {})
