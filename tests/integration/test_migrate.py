"""Topics and tables are brought to what a deployment needs: said first, repeatable, and from two places at once."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from cassandra.cluster import Session
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.migration import SIGNED_SINCE, TableMigration, TopicMigration
from deploy.schema import migrate, pending
from deploy.secrets_key import register
from master_dataset.errors import OperatorError
from master_dataset.kafka.growth import Growth, PartitionGrowths
from master_dataset.kafka.topics import TopicChange, Topics, TopicSettings
from serving_layer.tables import AsyncSession, KeyTables
from tests.integration.conftest import Keyspaces, Stack

ADDING = ("013_webhook_states.cql", "014_webhook_begun.cql", "016_webhook_refusing.cql", "022_releases.cql")
"""Files that add columns, and do not say that these may be there."""
WANTED = TopicSettings(partitions=2, replication=1, retention_ms=3_600_000)


@pytest.fixture
def topics(stack: Stack) -> Topics:
    return Topics(stack.settings.kafka.connection)


@pytest.fixture
def name() -> str:
    return f"migrated-{uuid4().hex[:8]}"


def test_a_topic_that_is_missing_is_created_and_one_that_differs_is_altered(topics: Topics, name: str) -> None:
    longer = TopicSettings(partitions=2, replication=1, retention_ms=7_200_000)
    first = topics.planned([name], WANTED)
    topics.apply(first, WANTED)
    repeated = topics.planned([name], WANTED)
    second = topics.planned([name], longer)
    topics.apply(second, longer)
    topics.apply(first, WANTED)  # somebody else was quicker

    assert [(each.topic, each.is_new) for each in first] == [(name, True)]
    assert repeated == []
    assert [(each.topic, each.is_new, dict(each.options)) for each in second] == [
        (name, False, {"retention.ms": "7200000"})
    ]
    assert topics.planned([name], longer) == []
    topics.check(name, {2})


def test_what_cannot_be_altered_is_refused_by_name(stack: Stack, topics: Topics, name: str) -> None:
    connection = stack.settings.kafka.connection
    admin = AdminClient(connection.client())
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    before = topics.planned([name], WANTED)
    producer = Producer(connection.client())
    producer.produce(name, b"x")
    producer.flush()

    assert before[0].options["message.timestamp.type"] == "LogAppendTime"
    with pytest.raises(OperatorError, match="keeps the sender's time"):
        topics.planned([name], WANTED)
    topics.create([f"{name}-2"], WANTED)
    with pytest.raises(OperatorError, match="has 2 partitions, which cannot become 3"):
        topics.planned([f"{name}-2"], TopicSettings(3, 1, 3_600_000))


@pytest.fixture
def keyspace(stack: Stack) -> Iterator[str]:
    name = f"migrated_{uuid4().hex[:8]}"
    yield name
    with _session(stack) as session:
        session.execute(f"DROP KEYSPACE IF EXISTS {name}")


@contextmanager
def _session(stack: Stack) -> Iterator[Session]:
    session = stack.cassandra(None)
    yield session
    session.cluster.shutdown()


@pytest.mark.nightly
def test_two_that_create_the_tables_at_once_create_the_same(stack: Stack, keyspace: str) -> None:
    def run(_: int) -> None:
        with _session(stack) as session:
            migrate(session, keyspace)

    with _session(stack) as session:
        missing = pending(session, keyspace)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, range(2)))
        applied = {row.name for row in session.execute(f"SELECT name FROM {keyspace}.migrations")}  # noqa: S608 - a name of ours

        assert pending(session, keyspace) == []
        assert applied == {file.name for file in missing} | {"usable_since"}


def test_tables_of_a_newer_release_are_refused(keyspaces: Keyspaces) -> None:
    newer = "999_newer.cql"
    with keyspaces.lend() as session:
        session.execute("INSERT INTO migrations (name, checksum) VALUES (%s, 'x')", (newer,))
        try:
            with pytest.raises(OperatorError, match=r"a newer release has applied `999_newer\.cql`"):
                pending(session, session.keyspace)
        finally:
            session.execute("DELETE FROM migrations WHERE name = %s", (newer,))


def test_a_migration_that_was_killed_before_it_was_recorded_is_repeated(stack: Stack, keyspaces: Keyspaces) -> None:
    with keyspaces.lend() as session, _session(stack) as migrating:
        files = [row.name for row in session.execute("SELECT name FROM migrations") if row.name in ADDING]
        for name in files:
            session.execute("DELETE FROM migrations WHERE name = %s", (name,))

        migrate(migrating, session.keyspace)

        assert sorted(files) == sorted(ADDING)
        assert pending(session, session.keyspace) == []


def test_the_command_says_what_it_would_do_and_changes_nothing(stack: Stack) -> None:
    said = stack.galatea("migrate", "--dry-run")

    assert said["dry_run"] is True
    assert {each["system"] for each in said["changes"]} <= {"disk"}


def test_no_migration_signs_a_key(stack: Stack, keyspaces: Keyspaces, tmp_path: Path) -> None:
    settings = stack.settings.replace(home=str(tmp_path))
    insert = "INSERT INTO api_keys (id, digest, tenant, scopes, created_at) VALUES (%s, %s, '*', {'operate'}, %s)"
    with keyspaces.lend() as session, _session(stack) as migrating:
        session.execute("DELETE FROM migrations WHERE name = %s", (SIGNED_SINCE,))  # as a former release left it
        session.execute(insert, ("unsigned", b"digest", BEGUN))
        migrate(migrating, session.keyspace)
        key_file = register(settings, session)

        [key] = asyncio.run(KeyTables(AsyncSession(session), key_file).keys())

    assert (key.id, key.is_signed) == ("unsigned", False)


def test_a_dry_run_names_the_keys_that_a_release_which_signs_will_refuse(stack: Stack) -> None:
    made = stack.galatea("keys", "create", "--tenant", "acme", "--scope", "read")

    shown = TableMigration(stack.settings.cassandra.address).shown([Path(SIGNED_SINCE)])

    sentence = (
        f"refuse the key `{made['id']}` of the tenant `acme` (read), until you have run: galatea keys sign {made['id']}"
    )
    assert sentence in [change.what for change in shown]


BEGUN = datetime(2026, 5, 4, 9, 50, tzinfo=UTC)
OPENS = BEGUN + timedelta(minutes=10)
IDS = {"t": "first"}


def test_partitions_are_announced_then_open_and_only_one_growth_is_unfinished(keyspaces: Keyspaces) -> None:
    with keyspaces.lend() as session:
        growths = PartitionGrowths(session)
        begun = growths.begin(2, 4, IDS, BEGUN)
        assert growths.read(2, IDS).unfinished == begun == Growth(2, 4, BEGUN)
        assert growths.begin(2, 4, IDS, OPENS) == begun  # it goes on
        with pytest.raises(OperatorError, match="the growth from 2 to 4 partitions is not finished"):
            growths.begin(2, 8, IDS, BEGUN)

        announced = begun._replace(opens_at=OPENS, fences={"t": {0: 7, 1: 9}}, topic_ids=IDS)
        growths.announce(announced)
        late = announced._replace(opens_at=OPENS + timedelta(minutes=1))
        assert growths.confirm(late).is_open is False  # not what was announced
        opened = growths.confirm(announced)
        growths.announce(late)  # too late

        assert opened == announced._replace(is_open=True) == growths.settled(begun)
        assert growths.read(2, IDS).open == 4


def test_partitions_grow_by_multiples_only_also_after_topics_are_recreated(keyspaces: Keyspaces) -> None:
    with keyspaces.lend() as session:
        growths = PartitionGrowths(session)
        for before, number in ((2, 2), (2, 3), (4, 2)):
            with pytest.raises(OperatorError, match=f"{before} partitions cannot become {number}"):
                growths.begin(before, number, IDS, BEGUN)
        announced = growths.begin(2, 4, IDS, BEGUN)._replace(opens_at=OPENS, fences={"t": {0: 7}}, topic_ids=IDS)
        growths.announce(announced)
        growths.confirm(announced)

        again = {"t": "second"}
        assert growths.read(2, again).growths == ()
        assert growths.begin(2, 4, again, OPENS) == Growth(2, 4, OPENS)


def test_a_process_that_leaves_partitions_alone_still_creates_topics() -> None:
    new, altered = TopicChange("new", {"a": "b"}, 0), TopicChange("altered", {"a": "b"}, 2)

    kept = TopicMigration.without_growth([new, altered, TopicChange("grown", {}, 2)])

    assert kept == [new, TopicChange("altered", {"a": "b"})]
    assert kept[0].is_new
