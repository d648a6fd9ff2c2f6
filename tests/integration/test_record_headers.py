"""Headers of any bytes are read by the real driver, again and again, without an end of the process."""

import ctypes
from collections.abc import Sequence
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition, cimpl
from confluent_kafka.admin import AdminClient, NewTopic

from master_dataset.kafka.record import headers_of_message
from tests.integration.conftest import Stack

Names = Sequence[tuple[bytes, bytes | None]]
SENT_AND_READ: Sequence[tuple[Names, Sequence[tuple[str, bytes | None]]]] = [
    ([], []),
    ([(b"schema", b"a"), (b"b", None), (b"b", b"")], [("schema", b"a"), ("b", None), ("b", b"")]),
    ([("ü\U0001f6d2".encode(), b"\xff")], [("ü\U0001f6d2", b"\xff")]),
    ([(b"", b"x")], [("", b"x")]),
    ([(b"a\0\xff", b"x")], [("a", b"x")]),
    ([(b"a", b"x"), (b"\xff\xfe", b"x")], []),
    ([(b"a\xc3", b"x")], []),
    ([(b"\xed\xa0\x80", b"x")], []),
    ([(b"a", b"x")] * 100_001, []),
]
TIMES = 10
"""Python specializes a call after the first ones."""


def send(bootstrap: str, topic: str, records: Sequence[Names]) -> None:
    """The driver itself takes only names that are text, so this calls the library that it has."""
    library, error = ctypes.CDLL(cimpl.__file__), ctypes.create_string_buffer(512)
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, function).restype = ctypes.c_void_p
    config = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(config, b"bootstrap.servers", bootstrap.encode(), error, 512)
    producer = ctypes.c_void_p(library.rd_kafka_new(0, config, error, 512))
    topic_, value_, flags_, headers_, end = 1, 4, 7, 10, 0
    for names in records:
        headers = ctypes.c_void_p(library.rd_kafka_headers_new(ctypes.c_size_t(len(names))))
        for name, value in names:
            size = ctypes.c_ssize_t(-1 if value is None else len(value))
            library.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(len(name)), value, size)
        content = (value_, b"value", ctypes.c_size_t(5), flags_, 2, headers_, headers)
        assert library.rd_kafka_producev(producer, topic_, topic.encode(), *content, end) == 0
    assert library.rd_kafka_flush(producer, 60_000) == 0
    library.rd_kafka_destroy(producer)


def test_headers_that_the_driver_cannot_read_are_none(stack: Stack) -> None:
    client, topic = stack.settings.kafka.connection.client(), f"headers-{uuid4().hex[:8]}"
    admin = AdminClient(client)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    send(client["bootstrap.servers"], topic, [sent for sent, _ in SENT_AND_READ] * TIMES)
    consumer = Consumer({**client, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])

    messages = [message for _ in range(TIMES * len(SENT_AND_READ)) if (message := consumer.poll(60)) is not None]
    consumer.close()

    assert [each.error() for each in messages if each.error()] == []
    found = [headers_of_message(each) for each in messages]
    assert [list(each) for each in found] == [read for _, read in SENT_AND_READ] * TIMES
