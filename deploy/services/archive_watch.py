"""Looks at what the archive keeps: dead letters by reason, and whether the broker's clock steps back."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog
from prometheus_client import Counter

from master_dataset.alarm_table import CLOCK_STEPPED_BACK
from master_dataset.kafka.partition_progress import Seen
from master_dataset.kafka.stamps import steps_back
from views.core.cut import BEGINNING

Notice = Callable[[str, datetime, str, str], None]
"""Takes the name of an alarm, when it was noticed, where, and one sentence."""

RECEIVED = Counter("galatea_received", "Records read from the topic, as they came; no markers.", ("topic",))
EVENTS = Counter("galatea_events", "Events kept, repeats among them.", ("topic",))
DEAD_LETTERS = Counter("galatea_dead_letters", "Records kept as dead letters.", ("topic", "reason"))

log = structlog.get_logger()


class ArchiveWatch:
    """`cut_now` reads the published cut; `refresh` asks it, so that no micro-batch has to wait for the answer."""

    def __init__(self, notice: Notice, cut_now: Callable[[], datetime], skew: timedelta) -> None:
        """`notice` keeps an alarm. `skew`: how far clocks may differ."""
        self._notice, self._cut_now, self._skew = notice, cut_now, skew
        self._cut = BEGINNING
        self._newest: dict[str, dict[int, datetime]] = {}

    def refresh(self) -> None:
        """Learn the published cut."""
        self._cut = self._cut_now()

    def kept(self, topic: str, seen: Seen, *, repeats: bool) -> None:
        """Count, and compare the stamps. What repeats may be older than a cut that was published meanwhile."""
        newest = self._newest.setdefault(topic, {})
        for partition, sentence in steps_back(seen, newest, BEGINNING if repeats else self._cut, self._skew):
            place = f"{topic}/{partition}"
            log.error("alarm.clock_stepped_back", place=place, detail=sentence)
            self._notice(CLOCK_STEPPED_BACK, datetime.now(UTC), place, sentence)
        for partition, each in seen.items():
            newest[partition] = max(newest.get(partition, each.received_at), each.received_at)
            RECEIVED.labels(topic).inc(each.received)
            EVENTS.labels(topic).inc(each.events)
            for reason, number in each.dead_letters.items():
                DEAD_LETTERS.labels(topic, reason).inc(number)
