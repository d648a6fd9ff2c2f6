"""A topic is counted from the oldest record that it still has, also where that is deleted while it is asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka import offset_audit as topic_audit
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.offset_audit import OffsetAudit, audit_offsets

TOPIC = "pos_transactions"
PORTION = 3


@dataclass(frozen=True)
class Said:
    """A message: a record of a place, or an error of a partition."""

    at: int
    offset_: int
    error_: int | None = None

    def partition(self) -> int:
        return self.at

    def offset(self) -> int:
        return self.offset_

    def headers(self) -> None:
        return None

    def error(self) -> KafkaError | None:
        return None if self.error_ is None else KafkaError(self.error_)


@dataclass
class Log:
    """A consumer of two partitions. `firsts`: their oldest offsets; `after`: what happens after so many portions."""

    firsts: dict[int, int]
    ends: dict[int, int]
    after: dict[int, Callable[["Log"], None]] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    portions: int = 0

    def get_watermark_offsets(self, place: TopicPartition, _: float) -> tuple[int, int]:
        return self.firsts[place.partition], self.ends[place.partition]

    def assign(self, places: Sequence[TopicPartition]) -> None:
        self.positions = {each.partition: each.offset for each in places}

    def consume(self, *_: object) -> list[Said]:
        happens = self.after.pop(self.portions, None)
        if happens is not None:
            happens(self)
        self.portions += 1
        found = []
        for part, at in list(self.positions.items()):
            if at < self.firsts[part] and self.settings.get("auto.offset.reset") == "error":
                del self.positions[part]
                found.append(Said(part, at, KafkaError._AUTO_OFFSET_RESET))  # noqa: SLF001 - its name
                continue
            begin = at if at >= self.firsts[part] else self.ends[part]  # it goes on behind all that there is
            until = min(begin + PORTION, self.ends[part])
            found += [Said(part, offset) for offset in range(begin, until)]
            if until == self.ends[part]:
                found.append(Said(part, until, KafkaError._PARTITION_EOF))  # noqa: SLF001 - its name
            self.positions[part] = until
        return found

    def close(self) -> None:
        """Nothing is held."""


def counted(monkeypatch: pytest.MonkeyPatch, log: Log) -> dict[int, OffsetAudit]:
    def consumer(settings: dict[str, object]) -> Any:
        log.settings = settings
        return log

    monkeypatch.setattr(topic_audit, "Consumer", consumer)
    return audit_offsets(KafkaConnection("nowhere:1"), TOPIC, {0: 9, 1: 9}, lambda *_: None)


@pytest.mark.parametrize("portions", [0, 1, 2])
def test_what_retention_deletes_meanwhile_is_no_more_of_the_topic(
    monkeypatch: pytest.MonkeyPatch, portions: int
) -> None:
    log = Log({0: 0, 1: 0}, {0: 12, 1: 12}, {portions: lambda own: own.firsts.update({0: 7})})

    found = counted(monkeypatch, log)

    assert found == {0: OffsetAudit(7, 9, [(7, 9)]), 1: OffsetAudit(0, 9, [(0, 9)])}


def test_where_all_is_deleted_that_was_to_be_counted_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log({0: 0, 1: 0}, {0: 12, 1: 12}, {1: lambda own: own.firsts.update({0: 11})})

    found = counted(monkeypatch, log)

    assert (found[0].records, found[1].records) == (0, 9)


def test_a_partition_that_sends_nothing_is_an_error_while_another_one_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            self.now += 1.0
            assert self.now < 1_000, "it waits for ever"
            return self.now

    class Silent(Log):
        def consume(self, *_: object) -> list[Said]:
            self.positions.pop(0, None)
            self.ends[1] += 1
            return super().consume()

    monkeypatch.setattr(topic_audit, "time", Clock())

    with pytest.raises(BrokerUnavailableError, match="`pos_transactions/0` sent nothing for 30 s"):
        counted(monkeypatch, Silent({0: 0, 1: 0}, {0: 12, 1: 12}))


def test_what_was_read_already_stays_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log({0: 0, 1: 0}, {0: 12, 1: 12}, {2: lambda own: own.firsts.update({0: 4})})

    found = counted(monkeypatch, log)

    assert found[0] == OffsetAudit(0, 9, [(0, 9)])
