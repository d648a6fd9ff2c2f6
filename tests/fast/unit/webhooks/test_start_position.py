"""A new endpoint starts with alerts emitted after it was created, also while alerts are being emitted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from speed_layer.webhooks import start_position
from speed_layer.webhooks.start_position import PositionLostError

MADE_MS = 1000


@dataclass
class Failed:
    """An offset that the broker cannot return."""

    topic: str
    partition: int
    offset: int = -1001
    error: KafkaError = KafkaError(KafkaError.NOT_COORDINATOR)  # noqa: RUF009 - cannot be changed


class Topic:
    """confluent_kafka's Consumer over a topic of one partition, to which something happens after each question."""

    def __init__(self, stamps: Sequence[int], happens: Callable[["Topic"], None]) -> None:
        self.stamps, self._happens = list(stamps), happens
        self.place = -1001
        self.settings: dict[str, Any] = {}

    def __call__(self, settings: dict[str, Any]) -> "Topic":
        self.settings = settings
        return self

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout
        return [TopicPartition(each.topic, each.partition, self.place) for each in places]

    def get_watermark_offsets(self, _: TopicPartition, timeout: float) -> tuple[int, int]:
        assert timeout
        end = len(self.stamps)
        self._happens(self)
        return 0, end

    def offsets_for_times(self, requested: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout
        found = [
            next((offset for offset, stamp in enumerate(self.stamps) if stamp >= each.offset), OFFSET_END)
            for each in requested
        ]
        self._happens(self)
        return [
            TopicPartition(each.topic, each.partition, offset) for each, offset in zip(requested, found, strict=True)
        ]

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        assert not asynchronous
        (self.place,) = (each.offset for each in offsets)

    def close(self) -> None:
        return


def begun(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(start_position, "Consumer", topic)
    start_position.commit_start_positions({"group.id": "hooks"}, "alerts", [0], MADE_MS)
    return topic.place


def nothing(_: Topic) -> None:
    return


def an_alert(topic: Topic) -> None:
    topic.stamps.append(MADE_MS + len(topic.stamps))


def test_it_begins_with_the_first_alert_since_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert begun(Topic([998, 999, 1000, 1001], nothing), monkeypatch) == 2


def test_it_starts_at_the_end_where_nothing_was_emitted_since(monkeypatch: pytest.MonkeyPatch) -> None:
    assert begun(Topic([998, 999], nothing), monkeypatch) == 2


def test_an_alert_that_comes_between_two_questions_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert begun(Topic([998, 999], an_alert), monkeypatch) == 2


def test_where_it_has_begun_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic([998, 999, 1000], an_alert)
    topic.place = 1

    assert begun(topic, monkeypatch) == 1


@pytest.mark.parametrize("question", ["committed", "offsets_for_times"])
def test_what_a_broker_cannot_tell_is_not_taken_for_nothing(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic([998, 999, 1000], nothing)
    monkeypatch.setattr(topic, question, lambda *_, **__: [Failed("alerts", 0)])

    with pytest.raises(KafkaException):
        begun(topic, monkeypatch)
    assert topic.place == -1001


def test_one_that_has_begun_and_whose_place_is_gone_does_not_begin_anew_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = Topic([998, 999, 1000, 1001], nothing)
    monkeypatch.setattr(start_position, "Consumer", topic)

    with pytest.raises(PositionLostError, match="no longer knows where it stood"):
        start_position.commit_start_positions({"group.id": "hooks"}, "alerts", [0], MADE_MS, has_begun=True)
    assert topic.place == -1001


def test_what_an_open_transaction_holds_back_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic([], nothing)

    begun(topic, monkeypatch)

    assert topic.settings["isolation.level"] == "read_committed"


def test_a_partition_that_was_added_later_begins_as_the_others_did(monkeypatch: pytest.MonkeyPatch) -> None:
    class Grown(Topic):
        def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
            return [TopicPartition("alerts", 1, 7), *super().committed(places[:1], timeout)]

    topic = Grown([998, 999, 1000, 1001], nothing)
    monkeypatch.setattr(start_position, "Consumer", topic)

    start_position.commit_start_positions({"group.id": "hooks"}, "alerts", [0, 1], MADE_MS, has_begun=True)

    assert topic.place == 2


def test_what_the_topic_has_deleted_behind_a_place_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic([998, 999, 1000, 1001], nothing)
    topic.place = 1
    monkeypatch.setattr(topic, "get_watermark_offsets", lambda _, **__: (3, 4))
    monkeypatch.setattr(start_position, "Consumer", topic)

    with capture_logs() as said:
        start_position.commit_start_positions({"group.id": "hooks"}, "alerts", [0], MADE_MS, has_begun=True)

    assert [(each["event"], each["place"], each["records"]) for each in said] == [
        ("webhook.alerts_gone", "alerts/0/1", 2)
    ]
