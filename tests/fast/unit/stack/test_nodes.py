"""A home keeps how many nodes it was made with, and every command sees the same ones."""

from pathlib import Path

import pytest

from deploy.local.cassandra import cassandra_nodes
from deploy.local.checkup import checkup
from deploy.local.kafka import brokers
from deploy.local.nodes import Nodes, nodes_of, record_nodes, recorded_nodes
from deploy.local.stack import components
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from master_dataset.errors import OperatorError

THREE = Nodes(3, 3)


def started(home: Path, nodes: Nodes) -> None:
    """As `galatea up` does: the numbers first, then the folders of the nodes."""
    home.mkdir()
    record_nodes(home, nodes)
    (home / "kafka").mkdir()


def test_a_home_of_three_nodes_is_seen_by_every_command(tmp_path: Path) -> None:
    started(tmp_path / "home", THREE)

    settings = Settings(home=tmp_path / "home")

    assert settings.nodes == THREE
    assert settings.kafka.bootstrap == "127.0.0.1:9092,127.0.0.2:9092,127.0.0.3:9092"
    assert settings.cassandra.address.contact_points == ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    assert [component.name for component in components(settings)] == [
        "kafka",
        "kafka-2",
        "kafka-3",
        "cassandra",
        "cassandra-2",
        "cassandra-3",
        "archive",
        "speed",
        "alerts",
        "dispatcher",
        "api",
        "sql",
    ]


def test_a_new_home_has_one_node_of_each_kind(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")

    assert settings.nodes == Nodes(1, 1)
    assert settings.kafka.bootstrap == "127.0.0.1:9092"
    assert settings.cassandra.contact_points == "127.0.0.1"
    assert [component.name for component in components(settings)] == [
        "kafka",
        "cassandra",
        "archive",
        "speed",
        "alerts",
        "dispatcher",
        "api",
        "sql",
    ]


def test_a_home_made_before_there_were_three_has_one(tmp_path: Path) -> None:
    (tmp_path / "cassandra").mkdir()

    assert recorded_nodes(tmp_path) == Nodes(1, 1)


def test_a_home_that_lost_its_record_is_as_its_folders_say(tmp_path: Path) -> None:
    for folder in ("kafka", "kafka-2", "kafka-3", "cassandra", "secure"):
        (tmp_path / folder).mkdir()

    assert recorded_nodes(tmp_path) == Nodes(3, 1, secure=True)


def test_a_damaged_record_of_a_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "nodes.json").touch()

    with pytest.raises(OperatorError, match=r"nodes\.json` is damaged"):
        Settings(home=tmp_path)


def test_another_number_for_a_home_is_refused(tmp_path: Path) -> None:
    started(tmp_path / "home", THREE)

    with pytest.raises(OperatorError, match=r"created with 3 broker\(s\) and 3 Cassandra node\(s\)") as refused:
        record_nodes(tmp_path / "home", Nodes(1, 3))

    assert "new home" in refused.value.do
    assert recorded_nodes(tmp_path / "home") == THREE


def test_what_never_started_decides_nothing(tmp_path: Path) -> None:
    record_nodes(tmp_path, THREE)
    record_nodes(tmp_path, Nodes(1, 1))

    assert Settings(home=tmp_path).nodes == Nodes(1, 1)


@pytest.mark.parametrize("log", ["kafka.log", "cassandra-2.log"])
def test_a_home_whose_log_and_tables_were_moved_away_stays_as_it_was(tmp_path: Path, log: str) -> None:
    secured = Nodes(3, 3, secure=True)
    record_nodes(tmp_path, secured)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / log).touch()

    assert recorded_nodes(tmp_path) == secured
    with pytest.raises(OperatorError, match="secured, which no setting can change afterwards"):
        record_nodes(tmp_path, Nodes(1, 1))


def test_a_new_home_with_a_copy_of_the_master_dataset_can_be_made_in_any_way(tmp_path: Path) -> None:
    (tmp_path / "master").mkdir()
    (tmp_path / "secrets.key").touch()
    record_nodes(tmp_path, Nodes(1, 1))  # and then `galatea up` fails, because a port is taken

    record_nodes(tmp_path, Nodes(1, 1, secure=True))

    (tmp_path / "kafka").mkdir()
    assert recorded_nodes(tmp_path) == Nodes(1, 1, secure=True)


def test_two_nodes_are_no_setting() -> None:
    with pytest.raises(InvalidSettingsError, match="must be 1 or 3"):
        Settings(kafka_brokers=2)


def test_all_nodes_of_a_kind_have_the_same_ports_on_addresses_of_their_own(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", kafka_brokers=3, cassandra_nodes=3)

    for kind in (brokers(settings), cassandra_nodes(settings)):
        assert {frozenset(component.ports.items()) for component in kind} == {frozenset(kind[0].ports.items())}
        assert [component.host for component in kind] == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


def test_the_first_node_has_the_name_of_its_kind() -> None:
    assert [node.name for node in nodes_of("kafka", 3)] == ["kafka", "kafka-2", "kafka-3"]


def test_a_cassandra_node_that_lost_its_data_does_not_take_part(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, cassandra_nodes=3)
    for name in ("cassandra", "cassandra-3"):
        (tmp_path / name / "data" / "system").mkdir(parents=True)
    first, second, _ = cassandra_nodes(settings)
    second.prepare()  # the ring was never complete: an ordinary first start
    (tmp_path / "cassandra" / "data" / "galatea").mkdir()

    first.prepare()
    with pytest.raises(OperatorError, match="cassandra-2 has lost its data"):
        second.prepare()


def test_a_broker_that_lost_its_log_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    [broker] = brokers(Settings(home=tmp_path))
    (tmp_path / "checkpoints" / "archive").mkdir(parents=True)

    with pytest.raises(OperatorError, match="the broker has lost its log") as refused:
        broker.prepare()

    assert "disaster-recovery.md" in refused.value.do


@pytest.mark.parametrize("days", [9, 14, 100])
def test_the_place_of_a_reader_that_stands_still_is_kept_longer_than_what_it_has_not_read(
    tmp_path: Path, days: int
) -> None:
    [broker] = brokers(Settings(home=tmp_path, kafka_retention_days=days))
    (tmp_path / "kafka" / "data").mkdir(parents=True)
    (tmp_path / "kafka" / "data" / "meta.properties").touch()

    broker.prepare()

    lines = (tmp_path / "kafka" / "server.properties").read_text().splitlines()
    properties = dict(line.split("=", 1) for line in lines)
    assert int(properties["offsets.retention.minutes"]) == (days + 30) * 24 * 60


def test_two_of_three_brokers_that_lost_their_logs_would_be_a_majority_of_those_who_forgot(tmp_path: Path) -> None:
    _, second, _ = brokers(Settings(home=tmp_path, kafka_brokers=3))
    (tmp_path / "checkpoints" / "archive").mkdir(parents=True)
    (tmp_path / "kafka" / "data").mkdir(parents=True)
    (tmp_path / "kafka" / "data" / "meta.properties").touch()

    with pytest.raises(OperatorError, match="the broker has lost its log"):
        second.prepare()


def test_doctor_knows_what_three_nodes_and_larger_heaps_take(tmp_path: Path) -> None:
    one, three, large = (
        {each.check: each.found for each in checkup(Settings(home=tmp_path, **more))}
        for more in (
            {},
            {"kafka_brokers": 3, "cassandra_nodes": 3},
            {"archive_processes": 2, "archive_heap_mb": 8192, "speed_heap_mb": 640 + 1024},
        )
    )

    assert one["memory"].endswith("take 6.8")
    assert three["memory"].endswith("take 9.2")
    assert large["memory"].endswith("take 23.2")
    assert "one may be lost" in three["copies"]
