"""`galatea doctor --deployment` on a healthy stack, and on topics and tables that break a rule."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from cassandra.cluster import Session
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.checks import cassandra as cassandra_checks
from deploy.checks.cassandra import node_findings, tables_finding
from deploy.checks.kafka import TopicRules, topic_finding
from deploy.services.releases import ReleaseRecorder
from galatea.cli.common.tenants import session_for_loads
from master_dataset.errors import OperatorError
from master_dataset.kafka.broker_versions import broker_versions
from master_dataset.kafka.inspection import Inspection
from tests.integration.conftest import Stack

RULES = TopicRules(2, needed=timedelta(days=8), wanted=timedelta(days=14), brokers=1)


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Inspection:
    return Inspection(stack.settings.kafka.connection)


def test_a_healthy_stack_has_no_fault(stack: Stack) -> None:
    findings = stack.galatea("doctor", "--deployment")["findings"]

    of_this_machine_and_other_tests = {"spark and disk", "running"}  # free space, alarms
    assert [each for each in findings if not each["ok"] and each["group"] not in of_this_machine_and_other_tests] == []
    assert {each["group"] for each in findings} == {
        "settings",
        "certificates",
        "kafka",
        "cassandra",
        "spark and disk",
        "running",
    }
    shown = {each["check"]: each["found"] for each in findings}
    assert shown["broker 1"].startswith("Kafka 4.2 at 127.0.0.1:")
    assert shown["topic pos_transactions"] == "partitions: 2, copies: 1, LogAppendTime, records kept 14 days"
    assert shown["node 127.0.0.1"].startswith("Cassandra 5.0")
    for component in ("alerts", "api", "archive", "dispatcher", "speed", "sql"):
        assert f"{component}: 0.1.0" in shown["releases"]
    assert shown["options of broker 1"] == "as Galatea needs them"


def test_a_broker_says_what_it_knows_without_a_login(stack: Stack) -> None:
    versions = broker_versions("127.0.0.1", stack.settings.kafka.port, stack.settings.kafka.connection.tls)

    assert versions.release == "4.2"
    assert versions.is_enough


def test_a_topic_with_the_time_of_senders_and_a_short_retention_is_named(stack: Stack, cluster: Inspection) -> None:
    name = f"wrong-{uuid4().hex[:8]}"
    admin = AdminClient(stack.settings.kafka.connection.client())
    admin.create_topics([NewTopic(name, 3, 1, config={"retention.ms": "3600000"})])[name].result()

    finding = topic_finding(name, cluster.topic(name), RULES)

    assert finding.blocks
    assert "message.timestamp.type=CreateTime" in finding.found
    assert "retention.ms=3600000: less than GALATEA_SPEED_TTL_DAYS" in finding.found
    assert "3 partitions, and GALATEA_KAFKA_PARTITIONS=2" in finding.found
    assert "galatea migrate" in finding.do


def test_the_clock_of_a_broker_is_measured_by_a_record_that_arrives(stack: Stack, cluster: Inspection) -> None:
    name = f"clock-{uuid4().hex[:8]}"
    connection = stack.settings.kafka.connection
    admin = AdminClient(connection.client())
    stamped = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(name, 1, 1, config=stamped)])[name].result()
    producer = Producer(connection.client())
    producer.produce(name, b"1")
    producer.flush()

    [quiet] = cluster.clock_offsets([name], watch_seconds=0).values()

    def arrive() -> None:
        producer.produce(name, b"2")
        producer.flush()

    arriving = threading.Timer(0.5, arrive)
    arriving.start()
    [busy] = cluster.clock_offsets([name], watch_seconds=60).values()
    arriving.join()

    assert (quiet.most, quiet.is_within(timedelta(seconds=60))) == (None, None)
    assert quiet.least <= 0
    assert busy.most is not None
    assert busy.least <= 0 <= busy.most


@pytest.fixture
def own_keyspace(cassandra: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A keyspace with the tables, which the checks take for Galatea's."""
    monkeypatch.setattr(cassandra_checks, "KEYSPACE", cassandra.keyspace)
    applied = cassandra.execute("SELECT name, checksum FROM migrations").all()
    yield cassandra
    cassandra.execute("TRUNCATE migrations")
    for row in applied:
        cassandra.execute("INSERT INTO migrations (name, checksum) VALUES (%s, %s)", (row.name, row.checksum))


def test_a_migration_that_ended_half_way_or_is_running_or_is_newer_is_named(own_keyspace: Session) -> None:
    complete = tables_finding(own_keyspace)
    own_keyspace.execute("INSERT INTO migrations (name, checksum) VALUES ('lock', 'host-1 42') USING TTL 300")
    running = tables_finding(own_keyspace)
    own_keyspace.execute("DELETE FROM migrations WHERE name = 'lock'")
    own_keyspace.execute("DELETE FROM migrations WHERE name = '020_seen_titles.cql'")
    half = tables_finding(own_keyspace)
    own_keyspace.execute("INSERT INTO migrations (name, checksum) VALUES ('999_future.cql', 'x')")
    newer = tables_finding(own_keyspace)

    assert complete.ok
    assert (running.blocks, "`host-1 42`" in running.found, "galatea migrate" in running.do) == (True, True, True)
    assert "half-way: `020_seen_titles.cql`" in half.found
    assert "a newer release has applied `999_future.cql`" in newer.found


def test_nothing_is_registered_in_tables_of_another_release(
    own_keyspace: Session, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.clusters.KEYSPACE", own_keyspace.keyspace)
    monkeypatch.setattr("deploy.cassandra.session_of", lambda _: own_keyspace)

    assert session_for_loads(stack.settings) is own_keyspace
    own_keyspace.execute("DELETE FROM migrations WHERE name = '034_former_terms.cql'")
    with pytest.raises(OperatorError, match=r"older than this release, which needs `034_former_terms\.cql`"):
        session_for_loads(stack.settings)
    own_keyspace.execute("INSERT INTO migrations (name, checksum) VALUES ('999_future.cql', 'x')")
    with pytest.raises(OperatorError, match=r"a newer release has applied `999_future\.cql`"):
        session_for_loads(stack.settings)


def test_the_clock_of_each_node_is_compared(stack: Stack, own_keyspace: Session) -> None:
    found = {each.check: each for each in node_findings(stack.settings, own_keyspace)}

    assert found["clock of node 127.0.0.1"].ok


def test_releases_are_those_that_processes_have_written_within_a_minute(own_keyspace: Session) -> None:
    now = datetime.now(UTC)
    write = "INSERT INTO lag (reader, topic, partition, release, measured_at) VALUES (%s, 't', 0, %s, %s)"
    own_keyspace.execute(write, ("archive", "0.0.9", now))
    own_keyspace.execute(write, ("speed", "0.0.8", now - timedelta(hours=1)))

    finding = cassandra_checks.releases_finding(own_keyspace, now)

    assert not finding.ok
    assert "archive: 0.0.9" in finding.found
    assert "0.0.8" not in finding.found


def test_a_process_of_another_release_that_measures_no_lag_is_named(own_keyspace: Session) -> None:
    assert ReleaseRecorder(lambda: own_keyspace, "api-2", "0.0.7").record()

    assert "api: 0.0.7" in cassandra_checks.releases_finding(own_keyspace, datetime.now(UTC)).found
