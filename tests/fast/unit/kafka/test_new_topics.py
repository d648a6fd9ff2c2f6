"""A partition has no leader for a moment, or one that is not ready: its offsets are asked for again."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka import topics
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.topics import Topics


class Admin:
    """Answers with an error of the partition so many times."""

    def __init__(self, code: int, times: int) -> None:
        self.code, self.times = code, times

    def list_topics(self, topic: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=[0])})

    def list_offsets(self, specs: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        future = Future[Any]()
        if self.times:
            self.times -= 1
            future.set_exception(KafkaException(KafkaError(self.code)))
        else:
            future.set_result(SimpleNamespace(offset=7))
        return dict.fromkeys(specs, future)

    def poll(self, _: float) -> None:
        pass


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    ],
)
def test_it_is_asked_for_again(code: int) -> None:
    with patch.object(topics, "AdminClient", lambda _: Admin(code, 2)):
        assert Topics(KafkaConnection("memory:1")).end_offsets("t") == {0: 7}


def test_another_error_is_reported_at_once() -> None:
    with patch.object(topics, "AdminClient", lambda _: Admin(KafkaError.TOPIC_AUTHORIZATION_FAILED, 1)):
        own = Topics(KafkaConnection("memory:1"))
        with pytest.raises(BrokerUnavailableError):
            own.end_offsets("t")
