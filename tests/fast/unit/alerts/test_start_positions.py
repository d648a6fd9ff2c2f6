"""The alert processor starts at the committed positions. Only a new one may have none."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import TopicPartition

from master_dataset.errors import OperatorError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import TopicIdentity
from tests.fast.model.alert_processor.memory_clients import MemoryConsumer, Process
from tests.fast.model.alert_processor.memory_kafka import MemoryKafka, Slot
from tests.fast.model.alert_processor.simulated import BEGIN, RULE_HISTORY, MemoryRuleStore, Variant, in_process
from tests.support.alert_signatures import signatures_of
from tests.support.alerting import value
from views.alerts.alert import CORRECTIONS_TOPIC
from views.alerts.timings import AlertTimings

TILLS, COUNTS = "pos_transactions", "people_counts"
ALERTS = ("alerts", 0)
LOGS = {topic: TopicIdentity(f"id of {topic}", 1) for topic in (TILLS, CORRECTIONS_TOPIC)}
FOREVER = 10**6


class Begun(BaseException):
    """The alert processor reads what comes in."""


def sold(broker: MemoryKafka, topic: str = TILLS, records: int = 5) -> None:
    log = broker.logs.setdefault((topic, 0), [])
    begin_at = BEGIN + len(log)
    log += [Slot(value(topic, at), at) for at in range(begin_at, begin_at + records)]


def broker_positions(broker: MemoryKafka) -> dict[str, int]:
    return {topic: at for (topic, _), at in broker.committed.items()}


def begin(
    broker: MemoryKafka, folder: Path, *topics: str, consumer: type[MemoryConsumer] = MemoryConsumer
) -> dict[str, int]:
    """A process of its own. What is committed when it reads."""

    def ready() -> None:
        raise Begun

    process = Process(broker, Random(1), FOREVER)
    process.is_harmed = False
    work = ProcessorConfig(
        KafkaConnection("memory"),
        topics or (TILLS,),
        Partitions(1),
        MemoryRuleStore(),
        Snapshots(folder),
        signatures_of(),
        ready=ready,
    )
    with in_process(process, Variant(), consumer), pytest.raises(Begun):
        AlertProcessor(work, 0).run()
    return broker_positions(broker)


@pytest.fixture
def broker() -> MemoryKafka:
    broker = MemoryKafka()
    sold(broker)
    return broker


def test_a_first_start_begins_at_the_end_and_reads_what_publications_ask_for(
    broker: MemoryKafka, tmp_path: Path
) -> None:
    broker.logs[CORRECTIONS_TOPIC, 0] = [Slot(b"{}")]

    positions = begin(broker, tmp_path)

    assert positions == {TILLS: 5, CORRECTIONS_TOPIC: 0}


def test_positions_that_are_gone_while_there_are_snapshots_are_a_named_stop(
    broker: MemoryKafka, tmp_path: Path
) -> None:
    begin(broker, tmp_path)
    broker.committed.clear()
    sold(broker)

    with pytest.raises(OperatorError, match="committed") as said:
        begin(broker, tmp_path)

    assert "docs/how-to/alerts.md, When positions are gone" in said.value.do
    assert broker.committed == {}


def test_lost_positions_after_alerts_were_emitted_are_a_named_error(broker: MemoryKafka, tmp_path: Path) -> None:
    broker.logs[ALERTS] = [Slot(b'{"alert_id": "a"}')]

    with pytest.raises(OperatorError, match="committed"):
        begin(broker, tmp_path)

    assert broker.committed == {}


def test_positions_that_an_operator_has_set_are_where_it_goes_on(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path)
    broker.committed = {(TILLS, 0): 3, (CORRECTIONS_TOPIC, 0): 0}

    positions = begin(broker, tmp_path)

    assert positions == {TILLS: 3, CORRECTIONS_TOPIC: 0}


def test_a_source_that_came_with_an_upgrade_begins_at_its_end(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path)
    sold(broker)
    sold(broker, COUNTS, 2)

    positions = begin(broker, tmp_path, TILLS, COUNTS)

    assert positions == {TILLS: 5, COUNTS: 2, CORRECTIONS_TOPIC: 0}


def test_the_position_of_one_topic_that_is_gone_is_a_named_stop(broker: MemoryKafka, tmp_path: Path) -> None:
    sold(broker, COUNTS, 2)
    begin(broker, tmp_path, TILLS, COUNTS)
    del broker.committed[COUNTS, 0]

    with pytest.raises(OperatorError, match=COUNTS):
        begin(broker, tmp_path, TILLS, COUNTS)


def made_anew(broker: MemoryKafka, topic: str) -> None:
    """It has another id, and more records than before."""
    broker.ids[topic] = "another"
    broker.logs[topic, 0] = []
    sold(broker, topic, 9)


def test_a_topic_made_anew_is_known_though_it_is_longer_than_what_was_read(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path)
    made_anew(broker, TILLS)

    with pytest.raises(OperatorError, match="was recreated") as said:
        begin(broker, tmp_path)

    assert "docs/how-to/alerts.md, When records are gone" in said.value.do
    assert broker.committed[TILLS, 0] == 5


def test_a_topic_made_anew_with_which_its_position_went_is_known_without_snapshots(
    broker: MemoryKafka, tmp_path: Path
) -> None:
    begin(broker, tmp_path / "before")
    made_anew(broker, TILLS)
    del broker.committed[TILLS, 0]

    with pytest.raises(OperatorError, match="the committed position no longer exists"):
        begin(broker, tmp_path / "now")


def test_a_topic_made_anew_is_read_from_where_an_operator_says(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path)
    made_anew(broker, TILLS)
    broker.committed[TILLS, 0] = 9
    del broker.notes[TILLS, 0]

    positions = begin(broker, tmp_path)

    assert positions == {TILLS: 9, CORRECTIONS_TOPIC: 0}


def test_positions_from_before_topics_were_distinguished_are_accepted(broker: MemoryKafka, tmp_path: Path) -> None:
    broker.committed = {(TILLS, 0): 4, (CORRECTIONS_TOPIC, 0): 0}

    positions = begin(broker, tmp_path)

    assert positions == {TILLS: 4, CORRECTIONS_TOPIC: 0}


def deleting(broker: MemoryKafka, place: tuple[str, int], first: int) -> type[MemoryConsumer]:
    """A consumer behind which records are deleted, once it has begun to read that topic from its first record."""

    class Consumer(MemoryConsumer):
        def assign(self, places: Sequence[TopicPartition]) -> None:
            super().assign(places)
            if any((each.topic, each.partition) == place and each.offset == 0 for each in places):
                broker.firsts[place] = first

    return Consumer


def test_what_is_deleted_behind_a_reader_that_catches_up_is_gone_on_from(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path / "before")

    begin(broker, tmp_path / "now", consumer=deleting(broker, (TILLS, 0), 3))

    kept = Snapshots(tmp_path / "now").load(broker_positions(broker), LOGS)
    fresh = Fold(registered_sources()[TILLS], 0, AlertTimings())
    for offset, slot in [*enumerate(broker.logs[TILLS, 0])][3:]:
        fresh.step(LogRecord(offset, slot.stamp_ms, slot.value), RULE_HISTORY)
    assert kept is not None
    fresh.state.identities.clear()  # of the snapshot they are apart from the state
    assert kept.states[TILLS].digest() == fresh.state.digest()


def test_a_snapshot_from_before_what_is_deleted_counts_for_nothing(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path)
    sold(broker, records=4)
    broker.committed[TILLS, 0] = 9
    broker.firsts[TILLS, 0] = 7

    begin(broker, tmp_path)

    snapshots = Snapshots(tmp_path)
    assert snapshots.load(broker_positions(broker), LOGS) is not None
    [checksum] = snapshots.identities(TILLS).checksums.values()
    assert checksum.count == 2


def test_what_is_deleted_before_it_was_read_is_a_named_stop(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path)
    sold(broker)
    broker.firsts[TILLS, 0] = 7

    with pytest.raises(OperatorError, match="deleted before alerts had read them"):
        begin(broker, tmp_path)


def test_alerts_that_are_deleted_during_a_read_are_no_reason_to_stop(broker: MemoryKafka, tmp_path: Path) -> None:
    begin(broker, tmp_path)
    broker.logs[ALERTS] = [Slot(b'{"alert_id": "a"}') for _ in range(9)]

    positions = begin(broker, tmp_path, consumer=deleting(broker, ALERTS, 5))

    assert positions == {TILLS: 5, CORRECTIONS_TOPIC: 0}
