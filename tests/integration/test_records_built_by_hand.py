"""A broker looks into the records of a batch only where topics are uncompressed (docs/explanation/threat-model.md)."""

import socket
import struct
import time
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from master_dataset.kafka.topics import TopicSettings
from tests.integration.conftest import Stack

NO_LEADER, INVALID_RECORD, SNAPPY = (3, 5, 6), 87, 2
_POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes) -> int:
    """The checksum of a batch, RFC 3720, appendix B.4."""
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (_POLYNOMIAL if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def batch_of(record: bytes) -> bytes:
    """A batch of one record, compressed as Java does: chunks with their lengths behind a header."""
    chunk: bytes = pa.Codec("snappy").compress(record, asbytes=True)
    payload = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(chunk)) + chunk
    now = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", SNAPPY, 0, now, now, -1, -1, -1, 1) + payload
    return struct.pack(">qiibI", 0, len(checked) + 9, 0, 2, crc32c(checked)) + checked


def sent(bootstrap: str, topic: str, batch: bytes) -> int:
    """The broker's error code for a batch that is sent as it is, with Produce of version 7; 0: it is stored."""
    host, _, port = bootstrap.partition(":")
    name = struct.pack(">h", len(topic)) + topic.encode()
    body = struct.pack(">hhii", -1, -1, 30_000, 1) + name + struct.pack(">iii", 1, 0, len(batch)) + batch
    request = struct.pack(">hhih", 0, 7, 1, -1) + body
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb").read(4 + 4 + 4 + len(name) + 4 + 4 + 2)
    (code,) = struct.unpack(">h", answer[-2:])
    return int(code)


@pytest.mark.parametrize(("compression", "code"), [("snappy", 0), ("uncompressed", INVALID_RECORD)])
def test_a_record_with_a_wrong_length_is_refused_if_topics_are_uncompressed(
    stack: Stack, compression: str, code: int
) -> None:
    admin, topic = AdminClient(stack.settings.kafka.connection.client()), f"by-hand-{uuid4().hex[:8]}"
    config = dict(TopicSettings(1, 1, 3_600_000, compression).config)
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(60)
    content = b"\0\0\0\x02k\x02v\0"  # attributes, times, key, value, no headers; lengths are doubled
    right, wrong = (bytes([2 * (len(content) + more)]) + content for more in (0, 1))

    def outcome(record: bytes) -> int:
        while (found := sent(stack.settings.kafka.bootstrap, topic, batch_of(record))) in NO_LEADER:
            time.sleep(0.2)  # the topic was just created
        return found

    assert [outcome(record) for record in (right, wrong)] == [0, code]
