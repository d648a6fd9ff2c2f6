"""What a stream reads with Spark's source and what is read again with librdkafka are the same records."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition, cimpl
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PythonException

from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.record_spans import Span, record_spans
from master_dataset.kafka.topics import EARLIEST, Intake, offsets_json, record_stream
from tests.integration.conftest import Stack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Names = Sequence[tuple[bytes, bytes | None]]
HEADERS: Sequence[tuple[Names, Sequence[tuple[str, bytes | None]]]] = [
    ([], []),
    (
        [(b"schema", b"pos_transactions"), (b"a", None), (b"a", b"")],
        [("schema", b"pos_transactions"), ("a", None), ("a", b"")],
    ),
    ([("ü\U0001f6d2".encode(), b"\xff")], [("ü\U0001f6d2", b"\xff")]),
    ([(b"", b"x")], [("", b"x")]),
    ([(b"galatea-marker\0x", b"")], [("galatea-marker", b"")]),
    ([(b"a\0\xff", b"x")], [("a", b"x")]),
    ([(b"a", b"x"), (b"\xff\xfe", b"x")], []),
    ([(b"a\xc3\0", b"x")], []),
    ([(b"\xed\xa0\x80", b"x")], []),
    ([("\ufffd".encode(), b"x")], []),
    ([(b"a", b"x")] * 1_000, [("a", b"x")] * 1_000),
    ([(b"a", b"x")] * 1_001, []),
    ([(b"a", b"x")] * 100_001, []),
]
"""Of a record: what is sent, and what is read."""


@pytest.fixture
def topic(stack: Stack) -> str:
    name = f"spans-{uuid4().hex[:8]}"
    admin = AdminClient(stack.settings.kafka.connection.client())
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(60)
    return name


def send_headers(bootstrap: str, topic: str, records: Sequence[Names]) -> None:
    """To partition 0. The driver itself takes only names that are text, so this calls the library that it has."""
    library, error = ctypes.CDLL(cimpl.__file__), ctypes.create_string_buffer(512)
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, function).restype = ctypes.c_void_p
    config = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(config, b"bootstrap.servers", bootstrap.encode(), error, 512)
    producer = ctypes.c_void_p(library.rd_kafka_new(0, config, error, 512))
    topic_, partition_, value_, flags_, headers_, end = 1, 3, 4, 7, 10, 0
    for names in records:
        headers = ctypes.c_void_p(library.rd_kafka_headers_new(ctypes.c_size_t(len(names))))
        for name, value in names:
            size = ctypes.c_ssize_t(-1 if value is None else len(value))
            library.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(len(name)), value, size)
        place = (topic_, topic.encode(), partition_, ctypes.c_int32(0))
        content = (value_, b"value", ctypes.c_size_t(5), flags_, 2, headers_, headers)
        assert library.rd_kafka_producev(producer, *place, *content, end) == 0
    assert library.rd_kafka_flush(producer, 60_000) == 0
    library.rd_kafka_destroy(producer)


def streamed(stack: Stack, spark: "SparkSession", topic: str, checkpoint: Path) -> pa.Table:
    """All records of the topic, as a stream reads them."""
    intake = Intake(
        stack.settings.kafka.connection, Partitions(2), 2, offsets_json({topic: {0: EARLIEST, 1: EARLIEST}}), 1000, 1
    )
    found = list[pa.Table]()

    def keep(batch: "DataFrame", _: int) -> None:
        found.append(batch.toArrow())

    query = record_stream(spark, [topic], intake).writeStream.foreachBatch(keep).trigger(availableNow=True)
    query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    return pa.concat_tables(found)


def read_again(stack: Stack, spark: "SparkSession", spans: Sequence[Span], *, skips_deleted: bool = False) -> pa.Table:
    kafka = stack.settings.kafka.connection
    return record_spans(spark, kafka, Partitions(2), spans, skips_deleted=skips_deleted).toArrow()


def rows(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()
    return found


def test_headers_are_the_same_on_both_ways(stack: Stack, spark: "SparkSession", topic: str, tmp_path: Path) -> None:
    send_headers(stack.settings.kafka.bootstrap, topic, [sent for sent, _ in HEADERS])

    found = rows(streamed(stack, spark, topic, tmp_path))

    read = [[(each["key"], each["value"]) for each in row["headers"]] for row in found]
    assert read == [list(expected) for _, expected in HEADERS]
    assert rows(read_again(stack, spark, [Span(topic, 0, 0, len(HEADERS))])) == found


def test_keys_values_and_transactions_are_the_same_on_both_ways(
    stack: Stack, spark: "SparkSession", topic: str, tmp_path: Path
) -> None:
    client = {**stack.settings.kafka.connection.client(), "transactional.id": topic, "compression.type": "snappy"}
    producer = Producer(client)
    producer.init_transactions(60)

    def transaction(*records: tuple[bytes | None, bytes | None]) -> None:
        producer.begin_transaction()
        for number, (key, value) in enumerate(records):
            producer.produce(topic, value, key, partition=number % 2)
        producer.flush(60)

    transaction((None, None), (b"", b""), (b"a", None), (None, b"b"), (b"\xff", b"x" * 900_000))
    producer.commit_transaction(60)
    transaction((b"a", b"aborted"), (b"b", b"aborted"))
    producer.abort_transaction(60)
    transaction(*[(b"%d" % number, b"%d" % number) for number in range(20_000)])
    producer.commit_transaction(60)

    found = rows(streamed(stack, spark, topic, tmp_path))

    assert len(found) == 20_005
    ends = {0: 3 + 1 + 1 + 1 + 10_000 + 1, 1: 2 + 1 + 1 + 1 + 10_000 + 1}
    assert rows(read_again(stack, spark, [Span(topic, number, 0, end) for number, end in ends.items()])) == found
    assert rows(read_again(stack, spark, [Span(topic, 0, 2, 5), Span(topic, 1, 3, 4)])) == [
        row for row in found if row["partition"] == 0 and 2 <= row["offset"] < 5
    ]


def test_deleted_records_are_left_out_only_on_demand(stack: Stack, spark: "SparkSession", topic: str) -> None:
    kafka = stack.settings.kafka.connection
    producer = Producer(kafka.client())
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0
    place = TopicPartition(topic, 0, 6)
    admin = AdminClient(kafka.client())
    admin.delete_records([place])[place].result(60)

    def values(*span: int, skips_deleted: bool) -> list[bytes]:
        found = read_again(stack, spark, [Span(topic, 0, *span)], skips_deleted=skips_deleted)
        return list(found["value"].to_pylist())

    assert values(0, 8, skips_deleted=True) == [b"6", b"7"]
    assert values(0, 5, skips_deleted=True) == []
    assert values(6, 8, skips_deleted=False) == [b"6", b"7"]
    with pytest.raises(PythonException, match=f"records of `{topic}/0` were deleted before they were read"):
        values(0, 8, skips_deleted=False)
