"""How far the layers have read: the demo waits for them before it says that two numbers should be equal."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.errors import OperatorError
from master_dataset.kafka.topics import Topics
from views.control.generation import Generations

if TYPE_CHECKING:
    from cassandra.cluster import Session

LAYERS = ("archive", "speed")
PATIENCE_SECONDS = 300.0
Step = Callable[[int, int, str], None]


class LayerProgress:
    """Of one topic."""

    def __init__(self, session: "Session", bootstrap: str, topic: str) -> None:
        """`session` uses Galatea's keyspace."""
        self._topics, self._topic = Topics(bootstrap), topic
        self._archive, self._generations = ArchivePositions(session), Generations(session)

    def until_read(self, layer: str, step: Step) -> None:
        """Wait until this layer has read all that the topic holds now. OperatorError if it stands still."""
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
        """Partition to the offset behind its last record, as of now."""
        return self._topics.end_offsets(self._topic)

    def has_read(self, ends: Mapping[int, int]) -> bool:
        """Whether both layers have read up to there."""
        return all(self._done(layer, ends) >= sum(ends.values()) for layer in LAYERS)

    def _done(self, layer: str, ends: Mapping[int, int]) -> int:
        positions = self._positions(layer)
        return sum(min(positions.get(partition, 0), end) for partition, end in ends.items())

    def _positions(self, layer: str) -> Mapping[int, int]:
        if layer == "archive":
            return self._archive.read().get(self._topic, {})
        pointer = self._generations.pointer()
        return self._generations.positions(pointer.generation).get(self._topic, {})
