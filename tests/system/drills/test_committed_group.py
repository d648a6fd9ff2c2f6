"""The consumer groups that show positions are committed again as soon as a broker that was killed is back."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.lag import ConsumerGroup
from tests.system.drills.drilled_broker import DrilledBroker, settings_for

GROUP, TOPIC = "galatea.test", "positions"
KILLS = 2


def committed(kafka: KafkaConnection) -> list[int]:
    """What another process reads."""
    consumer = Consumer({**kafka.client(), "group.id": GROUP})
    try:
        return [each.offset for each in consumer.committed([TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)], 30)]
    finally:
        consumer.close()


@pytest.mark.nightly
def test_positions_are_committed_again_after_a_broker_was_killed(tmp_path: Path) -> None:
    with DrilledBroker(settings_for(tmp_path)) as broker:
        admin = AdminClient(broker.kafka.client())
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(60)
        group = ConsumerGroup(broker.kafka, GROUP)
        group.commit({TOPIC: {0: 1, 1: 2}})
        for number in range(KILLS):
            broker.kill()
            with pytest.raises(BrokerUnavailableError):
                group.commit({TOPIC: {0: 10 + number, 1: 0}})
            broker.start()
            group.commit({TOPIC: {0: 10 + number, 1: 20 + number}})

            assert committed(broker.kafka) == [10 + number, 20 + number]
