"""Records of simulated sensors before and after encoding, and the counts of what was sent."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from lab.simulation.shop_day import SECOND_MS, ShopDay, written

LATENCY_MS = (200, 2 * SECOND_MS)


class Record(NamedTuple):
    """`sent_ms`: when it is sent; `sensor`: who sends it, empty where the source has no sensors."""

    sent_ms: int
    topic: str
    sensor: str
    body: Mapping[str, Any]


class Delivery(NamedTuple):
    """What goes to a topic, and when (UTC)."""

    send_at: datetime
    topic: str
    value: bytes


class Wire:
    """Makes the records of one source and day: the fields that all have, and a second of latency at most two."""

    def __init__(self, day: ShopDay, topic: str) -> None:
        """`topic` of the source."""
        self._store, self._topic, self._chance = day.store.id, topic, day.chance(f"wire {topic}")

    def record(self, at_ms: int, sensor: str, said: Mapping[str, Any], known_ms: int | None = None) -> Record:
        """Something that happened at `at_ms`. `known_ms`: when the sensor knows it, such as the end of an interval."""
        body = {"happened_at": written(at_ms), "operation_id": self._store}
        if sensor:
            body["sensor_id"] = sensor
        sent = (at_ms if known_ms is None else known_ms) + self._chance.randint(*LATENCY_MS)
        return Record(sent, self._topic, sensor, {**body, **said})


Records = Iterator[Record]


encode = msgspec.json.Encoder().encode
"""Its bytes hold no room to spare, and a day of many shops is held at once."""


class Sendable(NamedTuple):
    """`sent_ms`: since 1970, UTC."""

    sent_ms: int
    topic: str
    value: bytes


EVENTS, DUPLICATES, DEAD_LETTERS = "events", "duplicates", "dead_letters"
LATE, DRIFTED, SILENCED = "late", "drifted", "silenced"
"""Of the events: sent late, or by a clock that is wrong. Not sent: what a sensor would have told while it was off."""
KINDS = (EVENTS, DUPLICATES, DEAD_LETTERS, LATE, DRIFTED, SILENCED)


class Tally:
    """Per source. Sent = events + duplicates + dead letters; the other kinds say something of the events."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, topic: str, kind: str, number: int = 1) -> None:
        """Count something of a source."""
        self._counts[topic][kind] += number

    def dead_letter(self, topic: str, reason: str) -> None:
        """Count a record that can become no event, for this reason."""
        self.add(topic, DEAD_LETTERS)
        self._reasons[topic][str(reason)] += 1

    def of(self, kind: str) -> int:
        """How many of a kind there are, in all sources."""
        return sum(counts[kind] for counts in self._counts.values())

    @property
    def sent(self) -> int:
        """How many records are sent."""
        return self.of(EVENTS) + self.of(DUPLICATES) + self.of(DEAD_LETTERS)

    @property
    def reasons(self) -> Counter[str]:
        """How many dead letters there are for each reason."""
        return sum(self._reasons.values(), Counter[str]())

    def told(self) -> dict[str, dict[str, Any]]:
        """Give all counts for a manifest, by source."""
        return {topic: self._told(topic) for topic in sorted(self._counts)}

    def _told(self, topic: str) -> dict[str, Any]:
        counts = self._counts[topic]
        sent = counts[EVENTS] + counts[DUPLICATES] + counts[DEAD_LETTERS]
        return {
            "sent": sent,
            **{kind: counts[kind] for kind in KINDS},
            "reasons": dict(sorted(self._reasons[topic].items())),
        }
