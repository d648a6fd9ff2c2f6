"""Records of simulated sensors before and after encoding, and the counts of what was sent."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from lab.simulation.store_day import SECOND_MS, StoreDay, format_instant

LATENCY_MS = (200, 2 * SECOND_MS)


class SensorRecord(NamedTuple):
    """A record before encoding. `sent_ms`: time of sending; `sensor`: its id, empty if the source has no sensors."""

    sent_ms: int
    topic: str
    sensor: str
    body: Mapping[str, Any]


class TimedRecord(NamedTuple):
    """A record for a topic, with its time of sending (UTC)."""

    send_at: datetime
    topic: str
    value: bytes


class RecordFactory:
    """Makes the records of one source and day: adds common fields and a latency of at most two seconds."""

    def __init__(self, day: StoreDay, topic: str) -> None:
        """`topic`: the source."""
        self._store, self._topic, self._rng = day.store.id, topic, day.rng(f"wire {topic}")

    def record(self, at_ms: int, sensor: str, fields: Mapping[str, Any], known_ms: int | None = None) -> SensorRecord:
        """Return a record of what happened at `at_ms`. `known_ms`: when the sensor knows it."""
        body = {"happened_at": format_instant(at_ms), "operation_id": self._store}
        if sensor:
            body["sensor_id"] = sensor
        sent = (at_ms if known_ms is None else known_ms) + self._rng.randint(*LATENCY_MS)
        return SensorRecord(sent, self._topic, sensor, {**body, **fields})


Records = Iterator[SensorRecord]


encode = msgspec.json.Encoder().encode
"""Its bytes have no spare capacity, which matters because a day of many stores is in memory at once."""


class EncodedRecord(NamedTuple):
    """A record as bytes. `sent_ms`: time of sending, since 1970."""

    sent_ms: int
    topic: str
    value: bytes


EVENTS, DUPLICATES, DEAD_LETTERS = "events", "duplicates", "dead_letters"
LATE, DRIFTED, SILENCED = "late", "drifted", "silenced"
"""Events that were sent late or with a wrong clock; and records not sent because the sensor was off."""
KINDS = (EVENTS, DUPLICATES, DEAD_LETTERS, LATE, DRIFTED, SILENCED)


class SentCounts:
    """Counts by source: sent = events + duplicates + dead letters. The other kinds describe some of the events."""

    def __init__(self) -> None:
        """Start at zero."""
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, topic: str, kind: str, number: int = 1) -> None:
        """Add to a count of a source."""
        self._counts[topic][kind] += number

    def dead_letter(self, topic: str, reason: str) -> None:
        """Count a record that cannot become an event, for this reason."""
        self.add(topic, DEAD_LETTERS)
        self._reasons[topic][str(reason)] += 1

    def of(self, kind: str) -> int:
        """Return the count of a kind over all sources."""
        return sum(counts[kind] for counts in self._counts.values())

    @property
    def sent(self) -> int:
        """Number of records that are sent."""
        return self.of(EVENTS) + self.of(DUPLICATES) + self.of(DEAD_LETTERS)

    @property
    def reasons(self) -> Counter[str]:
        """Number of dead letters by reason."""
        return sum(self._reasons.values(), Counter[str]())

    def manifest(self) -> dict[str, dict[str, Any]]:
        """Return all counts by source, for the manifest."""
        return {topic: self._of_source(topic) for topic in sorted(self._counts)}

    def _of_source(self, topic: str) -> dict[str, Any]:
        counts = self._counts[topic]
        sent = counts[EVENTS] + counts[DUPLICATES] + counts[DEAD_LETTERS]
        return {
            "sent": sent,
            **{kind: counts[kind] for kind in KINDS},
            "reasons": dict(sorted(self._reasons[topic].items())),
        }
