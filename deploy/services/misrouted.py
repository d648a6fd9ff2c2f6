"""Events that alerts leave out, as they lie in another partition than their store's: counted, and an alarm."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter

from deploy.cassandra import FAILURES
from master_dataset.alarm_table import ALERTS_MISKEYED
from master_dataset.sources import registered_sources

Notice = Callable[[str, datetime, str, str], None]
"""Takes the name of an alarm, when it was noticed, where, and one sentence."""
MISKEYED = Counter(
    "galatea_alerts_miskeyed", "Events left out of alerts, in another partition than their store's.", ("topic",)
)
AGAIN_SECONDS = 1800.0
"""Noticed anew after so long: each is a row."""
SAID = "events lie in another partition than their store's"

log = structlog.get_logger()


class Miskeyed:
    """Of one process."""

    def __init__(self, notice: Notice, clock: Callable[[], float] = time.monotonic) -> None:
        """`notice` keeps an alarm; what it cannot keep is logged. `clock`: in seconds."""
        self._notice, self._clock = notice, clock
        self._said: dict[str, float] = {}
        for topic in registered_sources():
            MISKEYED.labels(topic)  # a counter that is there from the start shows its first increase

    def count(self, topic: str) -> None:
        """One more."""
        MISKEYED.labels(topic).inc()
        now = self._clock()
        if now - self._said.get(topic, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return
        self._said[topic] = now
        try:
            self._notice(ALERTS_MISKEYED, datetime.now(UTC), topic, SAID)
        except FAILURES as error:
            log.warning("alerts.miskeyed_not_noticed", topic=topic, error=type(error).__name__)
