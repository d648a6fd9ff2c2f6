"""A micro-batch that needs too much memory is not counted; smaller ones follow, until the backlog is read."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from deploy.services.speed import _Reading, _stream
from master_dataset.errors import GalateaError, GenerationReplacedError, MicroBatchTooLargeError
from master_dataset.visits.visit import RULES
from speed_layer.micro_batch import Horizons, MicroBatch
from tests.support.arrivals import Stated, arrival, arrived
from views.control.generation import Generation
from views.core.cells import WAITING

if TYPE_CHECKING:
    from speed_layer.driver import SpeedDriver

NOW = datetime(2026, 3, 7, 9, 0, 3, tzinfo=UTC)
DAY = timedelta(days=1)
HORIZONS = Horizons(epoch=timedelta(seconds=10), oldest=DAY, remembered=DAY, ttl=DAY, visits=RULES, skew=DAY)
TOO_LARGE = MicroBatchTooLargeError("too large", do="nothing")
REPLACED = GenerationReplacedError("replaced", do="nothing")


def test_a_task_with_too_many_bytes_asks_cassandra_nothing_and_reads_no_further() -> None:
    batches = [arrived([arrival(str(number), number, NOW, [(WAITING.name, 900, ["t"], [1])])]) for number in range(9)]
    read = list[pa.RecordBatch]()

    def reading() -> Iterator[pa.RecordBatch]:
        for each in batches:
            read.append(each)
            yield each

    def connect() -> Any:
        raise AssertionError("a task that is too large connects")

    most = sum(each.nbytes for each in batches[:3])
    stated, generation = Stated((), DAY, RULES), Generation(1, NOW, {}, {})
    count = MicroBatch(connect, stated, HORIZONS, generation, number=0, most_bytes=most)

    with pytest.raises(MicroBatchTooLargeError):
        list(count(reading()))

    assert len(read) == 4


@dataclass
class Queries:
    """What becomes of one query after the other: an error that ends it, or the records of its micro-batch."""

    become: Sequence[GalateaError | int]
    done: list[str] = field(default_factory=list)
    refusal: GalateaError | None = None
    size: int = 800
    caught_up_below: int = 0

    def start(self) -> Any:
        now, self.become = self.become[0], self.become[1:]
        self.done.append("start")
        self.refusal = now if isinstance(now, GalateaError) else None
        progress = None if self.refusal else SimpleNamespace(batchId=0, numInputRows=now, durationMs={})
        return SimpleNamespace(
            isActive=self.refusal is None, lastProgress=progress, stop=lambda: self.done.append("stop")
        )

    def begin_smaller(self, size: int) -> bool:
        assert size == self.size
        self.done.append("smaller")
        self.caught_up_below += 10
        return self.caught_up_below <= 20

    def resume_full_size(self) -> None:
        self.done.append("full size")
        self.caught_up_below = 0


def streamed(*become: GalateaError | int) -> list[str]:
    """What is done until an error ends it."""
    queries = Queries(become)
    with pytest.raises((MicroBatchTooLargeError, GenerationReplacedError)):
        _stream(cast("SpeedDriver", queries), cast("_Reading", queries), queries.start, lambda: None)
    return queries.done


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def test_after_a_micro_batch_that_is_too_large_smaller_ones_follow_until_it_has_caught_up() -> None:
    done = streamed(TOO_LARGE, TOO_LARGE, 19, REPLACED)

    assert done == ["start", "smaller", "start", "smaller", "start", "stop", "full size", "start"]


def test_the_fewest_records_that_are_too_large_end_the_process() -> None:
    done = streamed(TOO_LARGE, TOO_LARGE, TOO_LARGE)

    assert done == ["start", "smaller", "start", "smaller", "start", "smaller"]
