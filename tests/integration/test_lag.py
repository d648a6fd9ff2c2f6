"""Lag with the real broker: what is left to read, and for how long it has been waiting."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from master_dataset.lag import Probe
from tests.integration.conftest import Stack


def test_an_aborted_transaction_is_no_lag_and_an_unread_record_says_since_when(stack: Stack) -> None:
    topic, bootstrap = f"lag_{uuid4().hex}", stack.settings.kafka_bootstrap
    config = {"message.timestamp.type": "LogAppendTime"}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1, config=config)])[topic].result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    producer.flush(60)
    producer.abort_transaction(60)
    producer.begin_transaction()
    producer.produce(topic, b"kept", partition=1)
    producer.produce(topic, b"kept too", partition=1)
    producer.commit_transaction(60)

    with Probe(bootstrap) as probe:
        aborted, kept = probe.measure([topic], {})
        _, read = probe.measure([topic], {topic: {1: 2}})

    assert (aborted.position, aborted.end, aborted.records, aborted.seconds(datetime.now(UTC))) == (0, 2, 0, 0.0)
    assert (kept.records, read.records, read.oldest) == (3, 0, None)
    assert kept.oldest is not None
    assert kept.seconds(kept.oldest.received_at + timedelta(seconds=7)) == 7.0
