"""A micro-batch that needs too much memory is not counted; smaller ones follow, until it has been passed."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from deploy.services.speed import _Reading, _stream
from master_dataset.errors import GalateaError, GenerationReplacedError, MicroBatchTooLargeError
from master_dataset.kafka.growth import Partitions
from speed_layer.stream import bounded
from tests.support.arrivals import arrival, arrived
from tests.support.free_settings import settings_on_free_ports
from views.control.generation import Generation, Offsets
from views.control.speed_layout import BY_VIEW
from views.core.cells import WAITING

if TYPE_CHECKING:
    from speed_layer.driver import SpeedDriver

NOW = datetime(2026, 3, 7, 9, 0, 3, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)
TOO_LARGE = MicroBatchTooLargeError("too large", do="nothing")
REPLACED = GenerationReplacedError("replaced", do="nothing")


def test_parsing_stops_where_a_task_has_too_many_bytes() -> None:
    batches = [arrived([arrival(str(number), number, NOW, [(WAITING.name, 900, ["t"], [1])])]) for number in range(9)]
    read = list[pa.RecordBatch]()

    def parsed() -> Iterator[pa.RecordBatch]:
        for each in batches:
            read.append(each)
            yield each

    most = sum(each.nbytes for each in batches[:3])
    passed_on = list[pa.RecordBatch]()
    with pytest.raises(MicroBatchTooLargeError):
        passed_on.extend(bounded(parsed(), most))

    assert len(read) == 4
    assert list(bounded(iter(batches[:3]), most)) == batches[:3]


@dataclass
class Queries:
    """What becomes of one query after the other: an error that ends it, or how far the generation has come."""

    become: Sequence[GalateaError | None]
    done: list[str] = field(default_factory=list)
    refusal: GalateaError | None = None
    size: int = 800
    ends: Offsets = field(default_factory=lambda: {"receipts": {0: 7}})

    def start(self) -> Any:
        self.refusal, self.become = self.become[0], self.become[1:]
        self.done.append("start")
        return SimpleNamespace(isActive=self.refusal is None, lastProgress=None, stop=lambda: self.done.append("stop"))

    def has_passed(self) -> bool:
        return self.refusal is None

    def begin_smaller(self, size: int, ends: Offsets) -> bool:
        assert (size, ends) == (self.size, self.ends)
        self.done.append("smaller")
        return self.done.count("smaller") < 3

    def resume_full_size(self) -> None:
        self.done.append("full size")


def streamed(*become: GalateaError | None) -> list[str]:
    """What is done until an error ends it."""
    queries = Queries(become)
    with pytest.raises((MicroBatchTooLargeError, GenerationReplacedError)):
        _stream(
            cast("SpeedDriver", queries),
            cast("_Reading", queries),
            queries.start,
            lambda: None,
            lambda: queries.done.append("confirm"),
        )
    return queries.done


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def test_after_a_micro_batch_that_is_too_large_smaller_ones_follow_until_it_has_been_passed() -> None:
    done = streamed(TOO_LARGE, TOO_LARGE, None, REPLACED)

    smaller = ["confirm", "smaller", "start"]
    assert done == ["start", *smaller, *smaller, "stop", "full size", "start"]


def test_the_fewest_records_that_are_too_large_end_the_process() -> None:
    done = streamed(TOO_LARGE, TOO_LARGE, TOO_LARGE)

    assert done[-2:] == ["confirm", "smaller"]
    assert done.count("start") == 3


class Recorded:
    """Generations, in memory."""

    def __init__(self, served: int, cut: datetime, wanted: datetime | None = None) -> None:
        self._pointer = SimpleNamespace(generation=served, cut=cut)
        self.claims = SimpleNamespace(wanted_from=lambda _: wanted)
        self.begun = [Generation(5, LONG_AGO, {}, {}, {}, BY_VIEW)]
        self.reached: Offsets = {}

    def pointer(self) -> Any:
        return self._pointer

    def greatest(self) -> int:
        return self.begun[-1].number

    def find(self, _: int) -> Generation:
        return self.begun[-1]

    def name_topics(self, *_: object) -> None:
        pass

    def positions(self, _: int) -> Offsets:
        return self.reached

    def begin(self, generation: Generation, _: datetime) -> None:
        self.begun.append(generation)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Recorded], _Reading]:
    """How a process reads that has resumed generation 5, which began long ago."""
    topics = SimpleNamespace(end_offsets=lambda _: {0: 9}, offsets_since=lambda *_: {0: 0})
    for name, value in {
        "Topics": lambda _: topics,
        "session_of": lambda _: None,
        "can_resume": lambda *_: True,
        "layout_to_begin": lambda *_, **__: BY_VIEW,
        "starting_offsets": lambda *_: {"receipts": {0: 0}},
    }.items():
        monkeypatch.setattr(f"deploy.services.speed.{name}", value)
    settings = settings_on_free_ports(tmp_path)
    return lambda generations: _Reading(settings, cast("Any", generations), Partitions(1), {"receipts": "id"})


def test_micro_batches_have_an_eighth_of_the_records_until_the_generation_has_passed_the_large_one(
    reading: Callable[[Recorded], _Reading],
) -> None:
    generations = Recorded(served=5, cut=NOW)
    found = reading(generations)
    usual = found.feed.per_batch
    assert not found.has_passed()

    assert found.begin_smaller(8_000, {"receipts": {0: 100}})
    assert (found.feed.per_batch, found.generation) == (1_000, generations.begun[-1])
    assert found.begin_smaller(8_000, {"receipts": {0: 40}})  # of the next generation, which reads from the beginning
    assert found.feed.per_batch == 125
    generations.reached = {"receipts": {0: 99}}
    assert not found.has_passed()
    generations.reached = {"receipts": {0: 100}}
    assert found.has_passed()

    found.resume_full_size()
    assert found.feed.per_batch == usual
    assert not found.has_passed()


def test_hardly_any_records_cannot_become_fewer(reading: Callable[[Recorded], _Reading]) -> None:
    generations = Recorded(served=5, cut=NOW)
    found = reading(generations)

    assert not found.begin_smaller(64, {"receipts": {0: 100}})
    assert len(generations.begun) == 1
    assert found.begin_smaller(65, {"receipts": {0: 100}})
    assert found.feed.per_batch == 64


@pytest.mark.parametrize(("served", "emit_from"), [(5, NOW), (4, LONG_AGO)])
def test_a_generation_that_a_rollback_waits_for_is_replaced_by_one_that_begins_as_early(
    reading: Callable[[Recorded], _Reading], served: int, emit_from: datetime
) -> None:
    found = reading(Recorded(served, cut=NOW))

    assert found.begin_smaller(8_000, {"receipts": {0: 100}})

    assert found.generation.emit_from == emit_from
