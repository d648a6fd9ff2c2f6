"""A record that would take far more memory than the broker has received never gets into a topic."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from master_dataset.kafka.topics import TopicSettings
from tests.integration.conftest import Stack

TOPIC, LARGEST = "bombs", 100_000


@pytest.fixture(params=["snappy", "uncompressed"])
def topic(stack: Stack, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic as ours, but for smaller records: the broker of all tests need not unfold a bomb of 100 MB."""
    admin = AdminClient(stack.settings.kafka.connection.client())
    config = {**TopicSettings(1, 1, 3_600_000, request.param).config, "max.message.bytes": str(LARGEST)}
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(30)
    yield TOPIC
    admin.delete_topics([TOPIC])[TOPIC].result(30)


@pytest.mark.parametrize("codec", ["zstd", "gzip", "lz4", "snappy"])
def test_what_would_be_much_larger_for_its_readers_is_refused(stack: Stack, topic: str, codec: str) -> None:
    outcomes = list[KafkaError | None]()
    producer = Producer(
        {**stack.settings.kafka.connection.client(), "compression.type": codec, "message.max.bytes": 100_000_000}
    )

    for size in (22 * LARGEST, 5_000_000):
        producer.produce(topic, b"\0" * size, on_delivery=lambda error, _: outcomes.append(error))
        producer.flush(30)
    producer.produce(topic, b"usual", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(30)

    *refused, usual = outcomes
    assert [error.code() for error in refused if error] == [KafkaError.MSG_SIZE_TOO_LARGE] * 2
    assert usual is None
