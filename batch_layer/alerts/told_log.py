"""What one audit knows of the alerts that were told, and of what was asked for since another one has moved on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from batch_layer.alerts.alert_log import AlertLog, Request
from views.alerts.open_alerts import Standing, standings


@dataclass(frozen=True)
class ToldLog:
    """`seen`: how far requests were read by the audit that moved on last; `ends`: how far they go by now.

    Whoever is overtaken asks behind what the other one has read, by numbers that are the newest no more. So `unseen`,
    the ids of what lies there, is filled while the log is read, and is judged anew.
    """

    topics: AlertLog
    seen: Mapping[int, int]
    ends: Mapping[int, int]
    unseen: set[str] = field(default_factory=set)

    def standings(self, since_ms: int) -> Mapping[str, Standing]:
        """Of alerts about windows that began since then. BrokerUnavailable."""
        return standings(self.topics.told(since_ms), (each.record for each in self._asked(since_ms)))

    def is_asked_by_others(self, publication: int) -> bool:
        """Whether records were asked for, behind what was seen, that rest on another publication. BrokerUnavailable."""
        behind = {number: self._seen(number) for number in self.ends}
        return any(each.record.publication != publication for each in self.topics.asked(0, self.ends, behind))

    def _asked(self, since_ms: int) -> Iterator[Request]:
        for each in self.topics.asked(since_ms, self.ends):
            if each.offset >= self._seen(each.partition):
                self.unseen.add(each.record.alert_id)
            yield each

    def _seen(self, partition: int) -> int:
        """0 in a topic that is another one than was read."""
        seen = self.seen.get(partition, 0)
        return seen if seen <= self.ends.get(partition, 0) else 0
