"""Only alerts that our own processes have written are listed, sent and followed; the rest are dead letters."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, cast

import pytest

from master_dataset.dead_letters.undelivered import UndeliveredRecord, UndeliveredRecords
from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.results import Reason
from master_dataset.secrets_key import SecretsKey
from master_dataset.signed_alerts import SignedAlertsTable
from speed_layer.alerts.fold import LogRecord
from speed_layer.alerts.intake import AlertIntake
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import PartitionReader, SourceRecord
from tests.fast.model.alert_processor.memory_clients import Process
from tests.fast.model.alert_processor.memory_kafka import MemoryKafka, Slot
from tests.fast.model.alert_processor.simulated import BEGIN, MemoryRuleStore, Variant, in_process
from tests.support.alert_signatures import SECRETS_KEY, MemoryFirstSigned, signatures_of
from tests.support.alert_topic import alert
from tests.support.cassandra_rows import Rows
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC, Alert
from views.alerts.signatures import SIGNATURE_HEADER, Headers, RecordPlace

if TYPE_CHECKING:
    from cassandra.cluster import Session

OURS, FORGED = alert("acme", "1", 1), alert("acme", "1", 2)
VALUE = OURS.to_json()
PLACE = RecordPlace(ALERTS_TOPIC, 0, 7)


def signed(value: bytes, topic: str = ALERTS_TOPIC, key: SecretsKey = SECRETS_KEY) -> list[tuple[str, bytes]]:
    return [(name, mac) for name, mac in signatures_of(key=key).headers(topic, value) if isinstance(mac, bytes)]


def from_offset(first: int, topic: str = ALERTS_TOPIC) -> MemoryFirstSigned:
    return MemoryFirstSigned({(topic, 0): first})


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        (signed(VALUE), True),
        ([("other", b"x"), *signed(VALUE)], True),
        ([], False),
        (signed(FORGED.to_json()), False),
        (signed(VALUE, CORRECTIONS_TOPIC), False),
        (signed(VALUE, key=SecretsKey("y" * 43)), False),
        (signed(VALUE) * 2, False),
        ([(SIGNATURE_HEADER, None)], False),
        ([(SIGNATURE_HEADER, b"")], False),
    ],
)
def test_a_record_is_ours_if_it_is_signed_as_it_is_in_this_topic(headers: Headers, is_ours: bool) -> None:  # noqa: FBT001 - the table
    assert signatures_of(from_offset(7)).is_ours(PLACE, VALUE, headers) is is_ours


def test_what_a_former_release_has_written_counts_up_to_where_signing_began() -> None:
    signatures = signatures_of(from_offset(7))

    assert signatures.is_ours(PLACE._replace(offset=6), VALUE, ())
    assert not signatures.is_ours(PLACE, VALUE, ())
    assert signatures.is_ours(PLACE._replace(partition=1), VALUE, ())  # where nobody signs yet


def test_signing_begins_once_in_a_partition() -> None:
    places = MemoryFirstSigned()
    signatures = signatures_of(places)

    signatures.begin(ALERTS_TOPIC, {0: 5, 1: 0})
    signatures.begin(ALERTS_TOPIC, {0: 90, 1: 90})

    assert places.places == {(ALERTS_TOPIC, 0): 5, (ALERTS_TOPIC, 1): 0}


def test_in_a_topic_that_was_created_again_signing_begins_anew() -> None:
    places = from_offset(500)

    signatures_of(places).begin(ALERTS_TOPIC, {0: 3})

    assert places.places == {(ALERTS_TOPIC, 0): 3}


def test_where_signing_began_is_signed_itself() -> None:
    rows = Rows({"signed_alerts": ("topic", "partition")})
    table = SignedAlertsTable(cast("Session", rows), SECRETS_KEY)
    table.write(ALERTS_TOPIC, 0, 5)
    table.write(ALERTS_TOPIC, 1, 5)
    rows.tables["signed_alerts"][ALERTS_TOPIC, 1]["first_offset"] = 2**60  # somebody would have everything count

    assert table.read() == {(ALERTS_TOPIC, 0): 5}


def test_a_record_that_is_not_ours_is_kept_with_its_place_and_bytes(tmp_path: Path) -> None:
    undelivered = UndeliveredRecords(str(tmp_path))
    intake = AlertIntake(ALERTS_TOPIC, signatures_of(from_offset(0)), undelivered.append)

    found = [
        intake.alert(0, LogRecord(0, BEGIN, VALUE, signed(VALUE))),
        intake.alert(0, LogRecord(1, BEGIN, FORGED.to_json(), [("who", b"me")])),
        intake.alert(2, LogRecord(2, BEGIN, b"no alert", signed(b"no alert"))),
        intake.alert(2, LogRecord(3, BEGIN, None, ())),
    ]
    intake.store_rejected()
    intake.store_rejected()

    assert found == [OURS, None, None, None]
    from deltalake import DeltaTable  # noqa: PLC0415 - slow to import

    rows = DeltaTable(str(tmp_path / "undelivered")).to_pyarrow_table().sort_by("offset").to_pylist()
    assert [(row["topic"], row["partition"], row["offset"], row["reason"], row["value"]) for row in rows] == [
        ("alerts", 0, 1, "alert_not_signed", FORGED.to_json()),
        ("alerts", 2, 2, "alert_not_valid", b"no alert"),
        ("alerts", 2, 3, "alert_not_valid", None),
    ]
    assert rows[0]["headers"] == [{"key": "who", "value": b"me"}]


def test_a_dead_letter_that_cannot_be_stored_is_tried_again() -> None:
    stored: list[UndeliveredRecord] = []

    def away(_: Sequence[UndeliveredRecord]) -> None:
        raise DependencyUnavailableError("It is away.", do="Wait.")

    intake = AlertIntake(ALERTS_TOPIC, signatures_of(from_offset(0)), away)
    intake.alert(0, LogRecord(1, BEGIN, VALUE))
    with pytest.raises(DependencyUnavailableError):
        intake.store_rejected()
    intake._store = stored.extend  # noqa: SLF001 - the disk is there again
    intake.store_rejected()

    assert [each.offset for each in stored] == [1]


def test_a_forged_record_prevents_no_alert_of_that_id(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = PartitionReader(KafkaConnection("127.0.0.1:1"), [], 0)
    records = [LogRecord(0, BEGIN, FORGED.to_json()), LogRecord(1, BEGIN, VALUE, signed(VALUE))]
    read = [SourceRecord(ALERTS_TOPIC, each.offset + 1, each) for each in records]
    monkeypatch.setattr(reader, "bounds", lambda _: (0, 2))
    monkeypatch.setattr(reader, "poll", lambda: read)

    known = list(reader.known_alerts(lambda: None, signatures_of(from_offset(0))))

    reader.close()
    assert known == [(OURS.alert_id, BEGIN)]


class Done(BaseException):
    """Everything is read."""


def test_a_forged_request_for_a_correction_is_not_emitted_but_kept(tmp_path: Path) -> None:
    requested, rejected, emitted = VALUE, list[UndeliveredRecord](), list[Alert]()
    forged = Slot(FORGED.to_json(), BEGIN)
    ours = Slot(requested, BEGIN, headers=signed(requested, CORRECTIONS_TOPIC))
    till = ("pos_transactions", 0)
    broker = MemoryKafka(
        {(CORRECTIONS_TOPIC, 0): [forged, ours], till: []}, committed={(CORRECTIONS_TOPIC, 0): 0, till: 0}
    )
    process = Process(broker, Random(1), 10**6)
    process.is_harmed = False

    class Follower(AlertProcessor):
        def _process(self, *words: object) -> None:
            super()._process(*words)  # type: ignore[arg-type]
            if broker.committed[CORRECTIONS_TOPIC, 0] == 2:
                raise Done

    config = ProcessorConfig(
        KafkaConnection("memory"),
        [till[0]],
        Partitions(1),
        MemoryRuleStore(),
        Snapshots(tmp_path),
        signatures_of(from_offset(0, CORRECTIONS_TOPIC)),
        emitted=emitted.extend,
        store_rejected=rejected.extend,
    )
    with in_process(process, Variant()), pytest.raises(Done):
        Follower(config, 0).run()

    assert emitted == [OURS]
    assert [RecordPosition(*each[:3]).id for each in rejected] == ["alert_corrections/0/0"]
    assert rejected[0].reason == Reason.ALERT_NOT_SIGNED
    written = [slot for slot in broker.logs[ALERTS_TOPIC, 0] if slot.value]
    assert [slot.headers for slot in written] == [signed(VALUE)]
