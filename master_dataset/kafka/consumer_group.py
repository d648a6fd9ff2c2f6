"""Positions as a consumer group on the broker, so that ordinary Kafka tools show them. Never read back."""

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from master_dataset.errors import BrokerUnavailable

_TIMEOUT_SECONDS = 5.0


class ConsumerGroup:
    """A group without members: nobody joins it, and its offsets are what a reader has recorded elsewhere."""

    def __init__(self, bootstrap: str, name: str) -> None:
        """`bootstrap`: host:port of any broker."""
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self.name = name
        self._committed: dict[tuple[str, int], int] = {}

    def commit(self, positions: Mapping[str, Mapping[int, int]]) -> None:
        """Topic to partition to position. Does nothing if they have not moved. BrokerUnavailable if it fails."""
        offsets = {(topic, partition): at for topic, own in positions.items() for partition, at in own.items()}
        if offsets == self._committed:
            return
        asked = ConsumerGroupTopicPartitions(self.name, [TopicPartition(*place, at) for place, at in offsets.items()])
        try:
            done = self._admin.alter_consumer_group_offsets([asked], request_timeout=_TIMEOUT_SECONDS)
            answered = done[self.name].result(2 * _TIMEOUT_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise BrokerUnavailable(f"`{self.name}` could not be committed: {error}", do="galatea status") from error
        refused = [each for each in answered.topic_partitions if each.error]
        if refused:
            message = f"`{self.name}` could not be committed: {refused[0].error.str()}"
            raise BrokerUnavailable(message, do="galatea status")
        self._committed = offsets
