"""Another program's records in the topics of alerts reach no table and no transaction, and stop nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from structlog.testing import capture_logs

from master_dataset.parsing.results import Reason
from speed_layer.alerts.history_table import HistoryTable
from speed_layer.alerts.history_writer import UNREADABLE, HistoryWriter
from speed_layer.alerts.intake import AlertIntake
from speed_layer.alerts.processor import UNREADABLE_CORRECTIONS, AlertProcessor
from tests.fast.model.alert_processor.memory_clients import Process
from tests.fast.model.alert_processor.memory_kafka import MemoryKafka, Slot
from tests.fast.model.alert_processor.simulated import (
    BEGIN,
    CORRECTIONS,
    TOPIC,
    Variant,
    in_process,
    processor_config,
)
from tests.fast.unit.alerts.test_history_writer import Topic
from tests.support.alert_signatures import signatures_of
from tests.support.alert_topic import alert
from tests.support.hostile_alerts import ALERT, HOSTILE, body
from views.alerts.alert import CORRECTIONS_TOPIC, Alert

if TYPE_CHECKING:
    from master_dataset.dead_letters.undelivered import UndeliveredRecord

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
hostile = pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)


class Session:
    """Stands for Cassandra: records what is written. `bodies`: of the rows of `alert_records`."""

    def __init__(self, *bodies: str) -> None:
        self.written: list[tuple[str, Sequence[object]]] = []
        self._bodies = bodies

    def prepare(self, cql: str) -> str:
        return cql

    def execute(self, cql: str, values: Sequence[object]) -> list[Any]:
        if cql.startswith("SELECT body FROM alert_records"):
            return [SimpleNamespace(body=each) for each in self._bodies]
        if not cql.startswith("SELECT"):
            self.written.append((cql, values))
        return []

    def rows(self, table: str) -> list[Sequence[object]]:
        return [values for cql, values in self.written if f" {table} " in cql]


@pytest.mark.parametrize("kind", ["raised", "resolved", "retracted"])
def test_an_alert_of_the_processor_is_valid(kind: Any) -> None:
    written = alert("acme", "1", 7, kind)

    assert Alert.from_json(written.to_json()) == written
    assert Alert.from_json(written.to_json().decode()) == written


def test_a_field_of_a_later_release_is_ignored() -> None:
    assert Alert.from_json(body(more={"a": ["b"]})) == ALERT


@pytest.mark.parametrize("value", [b"", b"no json", b"[]", b"null", b"\xff", *HOSTILE.values()])
def test_anything_else_is_a_validation_error(value: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        Alert.from_json(value)


@hostile
def test_nothing_of_an_invalid_record_is_stored(value: bytes) -> None:
    session = Session()

    with pytest.raises(msgspec.ValidationError):
        HistoryTable(session).write(value)

    assert session.written == []


@hostile
def test_the_history_writer_keeps_an_invalid_record_as_a_dead_letter_and_says_which(value: bytes) -> None:
    session, before = Session(), UNREADABLE._value.get()  # noqa: SLF001 - the client has no other way
    kept: list[UndeliveredRecord] = []
    intake = AlertIntake("alerts", signatures_of(), kept.extend)
    writer = HistoryWriter(Topic([value, ALERT.to_json()], first=5), HistoryTable(session), intake, lambda: NOW)
    writer.start()

    with capture_logs() as logs:
        writer.step()

    [[_, record_id, text]] = session.rows("alert_records")
    assert (record_id, text) == (ALERT.alert_id, ALERT.to_json().decode())
    [entry] = [each for each in logs if each["event"] == "alerts.rejected"]
    assert entry["place"] == "alerts/0/5"
    assert [(*each[:3], each.reason, each.value) for each in kept] == [("alerts", 0, 5, Reason.ALERT_NOT_VALID, value)]
    assert UNREADABLE._value.get() == before + 1  # noqa: SLF001


@pytest.mark.parametrize("value", [body(place=[1]), body(raised_at="9999-12-31T23:59:59-01:00")])
def test_a_row_that_a_former_release_stored_does_not_stop_what_follows(value: bytes) -> None:
    session = Session(value.decode())

    HistoryTable(session).write(alert("acme", "1", 7, "resolved").to_json())

    assert len(session.rows("alert_records")) == 1
    assert session.rows("alerts_told") == []


def test_an_alert_is_listed_on_the_utc_day_on_which_it_was_raised() -> None:
    session = Session()

    HistoryTable(session).write(body(raised_at="2026-11-22T00:30:00+01:00"))

    assert {str(values[1]) for values in session.rows("alert_days")} == {"2026-11-21"}


class OverError(BaseException):
    """Everything is read."""


def test_requests_that_are_no_alerts_are_not_emitted(tmp_path: Path) -> None:
    broker = MemoryKafka(committed={TOPIC: 0, (CORRECTIONS_TOPIC, 0): 0})
    broker.logs[CORRECTIONS] = [Slot(each, BEGIN) for each in (*HOSTILE.values(), ALERT.to_json())]
    emitted, process = list[Alert](), Process(broker, Random(1), 10**6)
    process.is_harmed = False
    before = UNREADABLE_CORRECTIONS._value.get()  # noqa: SLF001

    def heard(alerts: Sequence[Alert]) -> None:
        emitted.extend(alerts)
        if broker.committed[CORRECTIONS] == len(broker.logs[CORRECTIONS]):
            raise OverError

    work = processor_config(tmp_path, heard)
    with in_process(process, Variant()), capture_logs() as logs, pytest.raises(OverError):
        AlertProcessor(work, 0).run()

    assert emitted == [ALERT]
    assert UNREADABLE_CORRECTIONS._value.get() == before + len(HOSTILE)  # noqa: SLF001
    places = [entry["place"] for entry in logs if entry["event"] == "alerts.rejected"]
    assert places == [f"{CORRECTIONS_TOPIC}/0/{offset}" for offset in range(len(HOSTILE))]
