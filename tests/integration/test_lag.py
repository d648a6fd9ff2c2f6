"""Lag with the real broker: what the readers recorded, seen by our command, by Kafka's own tools and by Prometheus."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from deploy.services.lag_monitor import LagMonitor
from master_dataset.cassandra_tables import CLOCK_STEPPED_BACK, AlarmTable
from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.lag import Lag, LagProbe, LagTable, UnreadRecord
from serving_layer.health.alarms import RULES
from serving_layer.tables import AsyncSession, WatchTables
from tests.integration.conftest import PATIENCE_SECONDS, Stack
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_in_cassandra import write

if TYPE_CHECKING:
    from cassandra.cluster import Session

TOPIC = "pos_transactions"
DEADLINE_SECONDS = 240


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.5)


def committed(stack: Stack, group: str) -> dict[int, int]:
    """As `kafka-consumer-groups.sh --describe` asks for it."""
    admin = AdminClient(stack.settings.kafka.connection.client())
    wanted_group = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([wanted_group])[group].result(30)
    return {each.partition: each.offset for each in found.topic_partitions if each.topic == TOPIC}


def scraped(stack: Stack, url: str) -> Callable[..., float]:
    """The Prometheus metrics of a process, by name and labels of a sample."""
    families = text_string_to_metric_families(stack.metrics(url))
    samples = [sample for family in families for sample in family.samples]

    def value(sample: str, /, **labels: str) -> float:
        [found] = [each.value for each in samples if each.name == sample and each.labels == labels]
        return float(found)

    return value


def all_read(stack: Stack) -> list[dict[str, Any]]:
    """The rows of `galatea lag` as soon as nothing is left to read."""
    rows: list[dict[str, Any]] = []

    def is_so() -> bool:
        rows[:] = stack.galatea("lag")["lag"]
        return not any(row["records"] for row in rows)

    until(is_so)
    return rows


def test_lag_goes_to_zero_and_every_place_that_shows_it_says_the_same(stack: Stack) -> None:
    now = datetime.now(UTC).isoformat()
    stores = [uuid4().hex for _ in range(20)]  # no other test asks for them

    stack.ingest(TOPIC, (receipt(now, minor=100, store=store) for store in stores))
    rows = all_read(stack)

    assert {(row["reader"], row["seconds"]) for row in rows} == {("archive", 0.0), ("speed", 0.0)}
    metrics = {each["name"]: each.get("metrics") for each in stack.galatea("status")["components"]}
    for reader in ("archive", "speed"):
        own = [row for row in rows if (row["reader"], row["topic"]) == (reader, TOPIC) and row["position"]]
        ends = {row["partition"]: row["end"] for row in own}
        until(lambda reader=reader, ends=ends: committed(stack, f"galatea.{reader}") == ends)  # type: ignore[misc]
        value = scraped(stack, metrics[reader])
        for partition, end in ends.items():
            place = {"reader": reader, "topic": TOPIC, "partition": str(partition)}
            assert (value("galatea_position", **place), value("galatea_lag_records", **place)) == (end, 0)
        assert value("galatea_micro_batch_seconds_count", reader=reader) > 0
    assert scraped(stack, metrics["archive"])("galatea_events_total", topic=TOPIC) >= len(stores)


def test_serving_shows_what_the_readers_measured_and_which_alarms_stand(stack: Stack) -> None:
    until(lambda: {row["reader"] for row in stack.get("/v1/freshness")["lag"]} == {"archive", "speed"})
    url = next(each["metrics"] for each in stack.galatea("status")["components"] if each["name"] == "api")

    value = scraped(stack, url)

    assert value("galatea_request_seconds_count", route="/v1/freshness", status="200") > 0
    assert {value("galatea_component_running", component=name) for name in ("kafka", "speed", "api")} == {1}
    assert {value("galatea_alarm", name=name) for name in RULES} <= {0, 1}
    assert {finding["check"] for finding in stack.galatea("doctor")["findings"]} & {"alarms", *RULES}


def test_a_group_that_somebody_has_joined_is_counted_as_not_committed_and_lag_is_measured_all_the_same(
    stack: Stack, shared_cassandra: "Session"
) -> None:
    reader, kafka = f"reader_{uuid4().hex}", stack.settings.kafka.connection
    member = Consumer({**kafka.client(), "group.id": f"galatea.{reader}"})
    member.subscribe([TOPIC])
    until(lambda: member.poll(0.1) is None and bool(member.assignment()))
    monitor = LagMonitor(reader, [TOPIC], lambda: {TOPIC: {0: 0}}, kafka)

    monitor.measure(LagTable(shared_cassandra, reader))

    member.close()
    assert REGISTRY.get_sample_value("galatea_commit_failures_total", {"reader": reader}) == 1
    measured = asyncio.run(WatchTables(AsyncSession(shared_cassandra)).lag(reader))
    assert {(each.partition, each.position) for each in measured} == {(0, 0), (1, 0)}


def test_a_topic_that_is_missing_among_others_is_named(stack: Stack) -> None:
    with LagProbe(stack.settings.kafka.connection) as probe:
        with pytest.raises(BrokerUnavailableError, match="cannot read the topic `no-such-topic`"):
            probe.measure([TOPIC, "no-such-topic"], {})
        assert {each.topic for each in probe.measure([TOPIC, "people_counts"], {})} == {TOPIC, "people_counts"}
        assert probe.measure([], {}) == []


def test_a_large_unread_record_is_found_beside_small_ones(stack: Stack) -> None:
    topic, kafka = f"lag_{uuid4().hex}", stack.settings.kafka.connection
    admin, producer = AdminClient(kafka.client()), Producer(kafka.client())
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(60)
    for partition, size in [(0, 100), (1, 900_000), (2, 100)] * 3:
        producer.produce(topic, b"x" * size, partition=partition)
    assert producer.flush(60) == 0

    with LagProbe(kafka) as probe:
        found = probe.measure([topic], {})

    assert [(each.partition, each.oldest and each.oldest.offset, each.records) for each in found] == [
        (0, 0, 3),
        (1, 0, 3),
        (2, 0, 3),
    ]


def test_an_aborted_transaction_is_no_lag_and_an_unread_record_says_since_when(stack: Stack) -> None:
    topic, kafka = f"lag_{uuid4().hex}", stack.settings.kafka.connection
    config = {"message.timestamp.type": "LogAppendTime"}
    admin = AdminClient(kafka.client())
    admin.create_topics([NewTopic(topic, 2, 1, config=config)])[topic].result(60)
    producer = Producer({**kafka.client(), "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    producer.flush(60)
    producer.abort_transaction(60)
    producer.begin_transaction()
    producer.produce(topic, b"kept", partition=1)
    producer.produce(topic, b"kept too", partition=1)
    producer.commit_transaction(60)

    deadline = time.monotonic() + PATIENCE_SECONDS
    with LagProbe(kafka) as probe:
        aborted, kept = probe.measure([topic], {})
        while not (aborted.end and kept.end):  # the broker may write the ends of transactions later than it says
            assert time.monotonic() < deadline, (aborted, kept)
            aborted, kept = probe.measure([topic], {})
        _, read = probe.measure([topic], {topic: {1: 2}})

    assert (aborted.position, aborted.end, aborted.records, aborted.seconds(datetime.now(UTC))) == (0, 2, 0, 0.0)
    assert (kept.records, read.records, read.oldest) == (3, 0, None)
    assert kept.oldest is not None
    assert kept.seconds(kept.oldest.received_at + timedelta(seconds=7)) == 7.0


def test_what_the_archive_notices_stands_in_freshness_until_a_publication(shared_cassandra: "Session") -> None:
    world = World()
    world.rebuild("2026-11-21T09:00:00Z")
    write(world, shared_cassandra)
    notice = AlarmTable(shared_cassandra).notice
    notice(CLOCK_STEPPED_BACK, at("2026-11-21T08:59:00Z"), "t/0", "a stamp of before the publication")
    notice(CLOCK_STEPPED_BACK, at("2026-11-21T09:01:00Z"), "t/0", "a stamp lies behind")
    notice(CLOCK_STEPPED_BACK, at("2026-11-21T09:02:00Z"), "t/1", "a stamp lies far behind")
    measured = [Lag("t", 0, 5, 9, UnreadRecord(6, at("2026-11-21T09:01:00Z"))), Lag("t", 1, 5, 5, None)]
    LagTable(shared_cassandra, "speed").write(measured, at("2026-11-21T09:02:00Z"))
    LagTable(shared_cassandra, "speed").write(measured, at("2026-11-21T09:03:00Z"))  # after a restart

    real = WatchTables(AsyncSession(shared_cassandra))
    body = Asking(world, watched=real).body("/v1/freshness", key=OPERATOR_KEY)
    moved_at = {each.moved_at for each in asyncio.run(real.lag("speed")) if each.topic == "t"}

    assert [(alarm["name"], alarm["since"]) for alarm in body["alarms"]] == [
        ("clock_stepped_back", "2026-11-21T09:01:00Z")
    ]
    assert [(row["records"], row["seconds"]) for row in body["lag"] if row["topic"] == "t"] == [
        (3, 120.0),
        (0, 0.0),
    ]
    assert moved_at == {at("2026-11-21T09:02:00Z")}
