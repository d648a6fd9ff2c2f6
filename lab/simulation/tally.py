"""What a simulation has sent, counted while it is made: so a reader of it can say whether anything got lost."""

from collections import Counter, defaultdict
from typing import Any

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
