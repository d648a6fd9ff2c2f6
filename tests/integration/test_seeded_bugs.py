"""Seeded bugs that only Spark can have: caught while they are on, and not found without them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import StreamingQueryException

from master_dataset.kafka import EARLIEST, Intake, offsets_json, record_stream
from tests.integration.conftest import Stack
from tests.integration.test_view_sql import test_batch_gives_the_cells_of_plain_python as sql_gives_plain_cells
from tests.seeded.bug import holds
from tests.seeded.bugs import BUGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_TIME, DATA_LOSS = (
    next(bug for bug in BUGS if bug.name == name) for name in ("local_time_windows", "data_loss_ignored")
)


def test_local_time_windows_are_caught(spark: "SparkSession") -> None:
    check = partial(sql_gives_plain_cells, spark, "people_counts")

    with LOCAL_TIME.on():
        caught = not holds(check)

    assert (caught, holds(check)) == (True, True)


def ends_behind_lost_records(spark: "SparkSession", bootstrap: str, folder: Path) -> None:
    """A stream that has read ten records ends by name when the next five are gone."""
    topic = f"lost-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)

    def send(some: int) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(some):
            producer.produce(topic, str(number).encode(), partition=0)
        assert producer.flush(60) == 0

    def read() -> None:
        intake = Intake(bootstrap, offsets_json({topic: {0: EARLIEST}}), 1000, 1)
        writer = record_stream(spark, [topic], intake).writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", str(folder / topic)).start().awaitTermination()

    send(10)
    read()
    send(10)
    admin.delete_records([TopicPartition(topic, 0, 15)])[TopicPartition(topic, 0, 15)].result(60)
    try:
        read()
    except StreamingQueryException:
        return
    raise AssertionError("five records were lost, and nobody said so")


def test_data_loss_ignored_by_a_stream_is_caught(stack: Stack, spark: "SparkSession", tmp_path: Path) -> None:
    check = partial(ends_behind_lost_records, spark, stack.settings.kafka_bootstrap, tmp_path)

    with DATA_LOSS.on():
        caught = not holds(check)

    assert (caught, holds(check)) == (True, True)
