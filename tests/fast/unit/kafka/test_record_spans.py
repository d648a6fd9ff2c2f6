"""Spans are read to their ends, in bounded batches, and a partition that sends nothing is an error."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, TopicPartition

from master_dataset.errors import BrokerAccessError, BrokerUnavailableError
from master_dataset.kafka import record_spans
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.record_spans import Span, SpanReader, spans_between

TOPIC = "pos_transactions"


@dataclass(frozen=True)
class Said:
    """A message: a record, or an error; `size`: of the value."""

    offset_: int
    size: int = 1
    error_: int | None = None

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.offset_

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return b"x" * self.size

    def timestamp(self) -> tuple[int, int]:
        return 2, 1_000 + self.offset_

    def headers(self) -> None:
        return None

    def error(self) -> KafkaError | None:
        return None if self.error_ is None else KafkaError(self.error_)


@dataclass
class Partition:
    """A consumer of one partition, which says this; None: nothing, for a second."""

    says: list[Said | None]
    clock: float = 0.0
    assigned: list[int] = field(default_factory=list)
    is_closed: bool = False

    def assign(self, places: Sequence[TopicPartition]) -> None:
        self.assigned += [each.offset for each in places]

    def poll(self, seconds: float) -> Said | None:
        said = self.says.pop(0) if self.says else None
        self.clock += 0 if said else seconds
        return said

    def monotonic(self) -> float:
        return self.clock

    def close(self) -> None:
        self.is_closed = True


def end(offset: int) -> Said:
    return Said(offset, error_=KafkaError._PARTITION_EOF)  # noqa: SLF001 - its name


def read(partition: Partition, monkeypatch: pytest.MonkeyPatch, span: tuple[int, int]) -> list[pa.RecordBatch]:
    monkeypatch.setattr(record_spans, "Consumer", lambda _: partition)
    monkeypatch.setattr(record_spans, "time", partition)
    reader = SpanReader(KafkaConnection("localhost:9092"), (Span(TOPIC, 0, *span),), skips_deleted=False)
    return list(reader(iter([pa.RecordBatch.from_pydict({"id": [0]})])))


def offsets(batches: Sequence[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


@pytest.mark.parametrize(
    "says",
    [
        [Said(3), Said(4)],
        [Said(3), None, Said(4), Said(5)],
        [Said(3), Said(4), Said(7)],
    ],
)
def test_a_span_is_read_up_to_its_end(says: list[Said | None], monkeypatch: pytest.MonkeyPatch) -> None:
    partition = Partition(says)

    assert offsets(read(partition, monkeypatch, (3, 5))) == [3, 4]
    assert (partition.assigned, partition.is_closed) == ([3], True)


def test_the_end_of_the_partition_ends_a_span_that_has_no_more_records(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offsets(read(Partition([Said(3), end(4), None, end(5)]), monkeypatch, (3, 5))) == [3]


def test_what_the_partition_does_not_have_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offsets(read(Partition([Said(3), end(4), None, Said(4)]), monkeypatch, (3, 5))) == [3, 4]


def test_a_partition_that_sends_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = Partition([Said(3), end(4)])

    with pytest.raises(BrokerUnavailableError, match="`pos_transactions/0` has sent nothing for 30 s"):
        read(partition, monkeypatch, (3, 5))
    assert partition.is_closed


def test_a_reader_without_rights_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Said(0, error_=KafkaError.TOPIC_AUTHORIZATION_FAILED)

    with pytest.raises(BrokerAccessError, match="cannot read the topic"):
        read(Partition([refused]), monkeypatch, (3, 5))


def test_batches_are_bounded_by_bytes_and_records(monkeypatch: pytest.MonkeyPatch) -> None:
    large = read(Partition([Said(number, 2**20) for number in range(9)]), monkeypatch, (0, 9))
    many = read(Partition([Said(number) for number in range(20_000)]), monkeypatch, (0, 20_000))

    assert [batch.num_rows for batch in large] == [4, 4, 1]
    assert [batch.num_rows for batch in many] == [8_000, 8_000, 4_000]


def test_spans_lie_between_two_offsets_of_each_partition() -> None:
    since = {"a": {0: 5, 1: 7}}
    until = {"a": {0: 6, 1: 7, 2: 3}, "b": {0: 1}}

    assert spans_between(since, until) == [Span("a", 0, 5, 6), Span("a", 2, 0, 3), Span("b", 0, 0, 1)]
