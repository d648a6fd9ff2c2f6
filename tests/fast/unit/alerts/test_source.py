"""What somebody else writes into the topic of alerts keeps nobody from telling alerts."""

import pytest

from master_dataset.kafka.connection import KafkaConnection
from speed_layer.alerts.fold import LogRecord
from speed_layer.alerts.source import PartitionReader, SourceRecord
from tests.support.alert_signatures import signatures_of
from views.alerts.alert import ALERTS_TOPIC

NOWHERE = KafkaConnection("127.0.0.1:1")
WRITTEN = [b'{"alert_id":"first"}', b"hello", None, b'{"alert_id":7}', b'{"other":1}', b'{"alert_id":"second"}']
WRITTEN += [b'{"alert_id":"\xff"}', b'{"more":' + b"[" * 20_000]


def test_records_that_are_no_alerts_are_known_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    inlet = PartitionReader(NOWHERE, [], 0)
    taken = [SourceRecord(ALERTS_TOPIC, at + 1, LogRecord(at, 1000 + at, value)) for at, value in enumerate(WRITTEN)]
    monkeypatch.setattr(inlet, "bounds", lambda _: (0, len(WRITTEN)))
    monkeypatch.setattr(inlet, "poll", lambda: taken)

    known = list(inlet.known_alerts(lambda: None, signatures_of()))

    inlet.close()
    assert known == [("first", 1000), ("second", 1005)]
