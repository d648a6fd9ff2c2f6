"""The topics of alerts are read to the end that they had, as long as that takes, and from where it matters."""

from collections import deque
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from batch_layer.alerts import alert_log
from batch_layer.alerts.alert_log import AlertLog
from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from tests.support.alert_signatures import signatures_of
from tests.support.alert_topic import alert
from tests.support.hostile_alerts import HOSTILE
from tests.support.memory_topic import Message
from views.alerts.alert import ALERTS_TOPIC, parse_instant_ms

ALERT = alert("acme", "1", 7)
DAY_MS = 24 * 3_600_000
BEGAN = parse_instant_ms(ALERT.window.start)


class Broker:
    """Consumer, topics and clock over records in memory. Each call takes `seconds` and gives one record."""

    def __init__(self, values: list[bytes], seconds: float) -> None:
        self.left = deque(Message(0, offset, "1", value) for offset, value in enumerate(values))
        self.ends = {0: len(values)}
        self.since: dict[int, int] = {}
        self.time_queries: list[tuple[str, int]] = []
        self.assigned: list[int] = []
        self.calls = 0
        self._seconds = seconds

    def __call__(self, _: object) -> "Broker":
        return self

    def end_offsets(self, _: str) -> Mapping[int, int]:
        return self.ends

    def offsets_since(self, topic: str, since_ms: int) -> Mapping[int, int]:
        self.time_queries.append((topic, since_ms))
        return self.since

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned = [place.offset for place in places]
        while self.left and self.left[0].offset() < self.assigned[0]:
            self.left.popleft()

    def consume(self, _: int, __: float) -> list[Message]:
        self.calls += 1
        return [self.left.popleft()] if self.left else []

    def monotonic(self) -> float:
        return self.calls * self._seconds

    def close(self) -> None:
        """Nothing is open."""


def played(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> AlertLog:
    for name in ("Consumer", "Topics"):
        monkeypatch.setattr(alert_log, name, broker)
    monkeypatch.setattr(alert_log, "time", SimpleNamespace(monotonic=broker.monotonic))
    return AlertLog(KafkaConnection("nowhere:1"), signatures_of())


def test_a_topic_that_takes_long_is_read_to_its_end_as_long_as_it_gets_on(monkeypatch: pytest.MonkeyPatch) -> None:
    log = played(monkeypatch, Broker([ALERT.to_json()] * 9, seconds=100))

    assert [*log.emitted(0)] == [ALERT] * 9


def test_a_topic_of_which_nothing_comes_any_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker([ALERT.to_json()], seconds=1)
    broker.ends = {0: 2}  # a transaction that nobody ends
    log = played(monkeypatch, broker)

    with pytest.raises(BrokerUnavailableError, match="120 s"):
        list(log.emitted(0))


def test_a_record_is_handed_on_before_the_next_ones_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker([ALERT.to_json()] * 3, seconds=1)
    log = played(monkeypatch, broker)

    assert next(iter(log.emitted(0))) == ALERT
    assert broker.calls == 1


@pytest.mark.parametrize(("since", "first"), [({0: 2}, 2), ({0: 9}, 4)])
def test_what_was_written_a_day_before_the_first_window_began_is_not_read(
    monkeypatch: pytest.MonkeyPatch, since: dict[int, int], first: int
) -> None:
    broker = Broker([ALERT.to_json()] * 4, seconds=1)
    broker.since = since
    log = played(monkeypatch, broker)

    alerts_read = list(log.emitted(BEGAN))

    assert broker.time_queries == [(ALERTS_TOPIC, BEGAN - DAY_MS)]
    assert broker.assigned in ([first], [])
    assert len(alerts_read) == 4 - first


def test_alerts_about_windows_that_began_before_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker([ALERT.to_json(), b"nobody's"], seconds=1)
    broker.since = {0: 0}
    log = played(monkeypatch, broker)

    assert list(log.emitted(BEGAN + 1)) == []


def test_records_that_are_no_alerts_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    log = played(monkeypatch, Broker([*HOSTILE.values(), ALERT.to_json()], seconds=1))

    requests: list[Any] = list(log.requests(0, {0: len(HOSTILE) + 1}))

    assert [(each.offset, each.record) for each in requests] == [(len(HOSTILE), ALERT)]


def test_requests_say_where_they_lie_and_are_read_from_a_place_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    log = played(monkeypatch, Broker([ALERT.to_json()] * 5, seconds=1))

    requests: list[Any] = list(log.requests(0, {0: 4}, {0: 3}))

    assert [(each.partition, each.offset) for each in requests] == [(0, 3)]
