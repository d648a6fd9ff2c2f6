"""A stream whose unread records were deleted from the topic fails instead of skipping them."""

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import StreamingQueryException

from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.topics import EARLIEST, Intake, offsets_json, record_stream
from tests.integration.conftest import Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_stream_fails_when_records_it_has_not_read_are_gone(
    stack: Stack, spark: "SparkSession", tmp_path: Path
) -> None:
    kafka, topic = stack.settings.kafka.connection, f"lost-{uuid4().hex[:8]}"
    admin = AdminClient(kafka.client())
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)

    def send(some: int) -> None:
        producer = Producer(kafka.client())
        for number in range(some):
            producer.produce(topic, str(number).encode(), partition=0)
        assert producer.flush(60) == 0

    def read() -> None:
        intake = Intake(kafka, Partitions(1), 1, offsets_json({topic: {0: EARLIEST}}), 1000, 1)
        writer = record_stream(spark, [topic], intake).writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / topic)).start().awaitTermination()

    send(10)
    read()
    send(10)
    admin.delete_records([TopicPartition(topic, 0, 15)])[TopicPartition(topic, 0, 15)].result(60)

    with pytest.raises(StreamingQueryException):
        read()
