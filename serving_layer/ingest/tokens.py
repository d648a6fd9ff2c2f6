"""The tokens of acknowledged events: what `at_least` names, from where the broker put them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from master_dataset.kafka.producer import Delivery, DeliveryStatus
from serving_layer.store.topic_logs import TopicLogs
from views.control.token import EventToken, TopicEnds
from views.core.waiting import WaitingRule


class Sent(NamedTuple):
    """A record that was sent. `happened_ms`: of its event, milliseconds since 1970; None if that is not known."""

    delivery: Delivery
    happened_ms: int | None


@dataclass
class Acknowledged:
    """The acknowledged records of one topic, added up. `rule`: which events only batch counts."""

    topic: str
    rule: WaitingRule
    _ends: dict[int, int] = field(default_factory=dict)
    _first_ms: int = 0
    _last_ms: int = 0
    _cut_ms: int = 0
    _is_known: bool = True

    def add(self, sent: Sent) -> None:
        """Add a record if it was acknowledged.

        A publication has to contain an event that only batch counts, and one of which it is not known.
        """
        (status, partition, offset, received_ms), happened_ms = sent
        if status is not DeliveryStatus.ACKNOWLEDGED:
            return
        if received_ms is None:
            self._is_known = False
            return
        self._first_ms = min(self._first_ms, received_ms) if self._ends else received_ms
        self._last_ms = max(self._last_ms, received_ms)
        self._ends[partition] = max(self._ends.get(partition, 0), offset + 1)
        if happened_ms is None or self.rule.waits(self.topic, happened_ms, received_ms):
            self._cut_ms = max(self._cut_ms, received_ms + 1)

    def token(self, tag: str) -> EventToken | None:
        """The token of the records. None if the topic does not say when one was received. `tag`: of the topic's id."""
        if not self._is_known:
            return None
        if not self._ends:
            return EventToken()
        return EventToken({self.topic: TopicEnds(tag, self._ends)}, self._first_ms, self._last_ms, self._cut_ms)


@dataclass(frozen=True)
class TokenWriter:
    """Makes the tokens of requests. `logs`: says which ids the topics have. `rule`: as of `Acknowledged`."""

    logs: TopicLogs
    rule: WaitingRule

    async def token(self, topic: str, sent: Iterable[Sent]) -> EventToken | None:
        """The token of the acknowledged ones of these records; None if it is not known where or when they arrived."""
        acknowledged = Acknowledged(topic, self.rule)
        for each in sent:
            acknowledged.add(each)
        tag = await self.logs.tag(topic)
        return None if tag is None else acknowledged.token(tag)
