"""The times that bound which windows may raise alerts, and how much of the log the alert processor remembers."""

from dataclasses import dataclass
from datetime import timedelta

_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class AlertTimings:
    """The times that bound what is followed and remembered.

    Attributes:
        oldest: The greatest age on arrival of events that count (A of R5).
        remembered: How long identities are remembered (D of R5).
        fresh: How long after its end a window may still raise an alert.
        grace: How long after its end a window is evaluated.
        pulse: How often rules are scanned because time has passed.
        blind: A log without records for longer was down, and says nothing about the stores.
        future: How far an event may be ahead of its receipt.
    """

    oldest: timedelta = timedelta(hours=23)
    remembered: timedelta = timedelta(hours=24)
    fresh: timedelta = timedelta(hours=2)
    grace: timedelta = timedelta(minutes=2)
    pulse: timedelta = timedelta(seconds=10)
    blind: timedelta = timedelta(minutes=2)
    future: timedelta = timedelta(hours=1)

    @property
    def kept(self) -> timedelta:
        """How long cells are kept: a week and the day compared with, the day itself, and four days before it."""
        return timedelta(days=12) + self.fresh + self.grace

    def first_remembered_hour(self, hour_ms: int) -> int:
        """The first hour (since the epoch) whose identities are remembered in the hour that begins at `hour_ms`."""
        return (hour_ms - int(self.remembered / timedelta(milliseconds=1))) // _HOUR_MS

    @property
    def stays_open(self) -> timedelta:
        """How long after its window a threshold alert may stay open.

        The next window resolves it, and a day has 25 hours at most. Only a log with a gap evaluates no next window.
        """
        return timedelta(hours=25) + self.grace + timedelta(hours=1)

    @property
    def horizon(self) -> timedelta:
        """How far back the log has to be read to restore the state: to the oldest cell behind an alert still open."""
        return self.kept + self.future + max(self.remembered, self.stays_open) + timedelta(hours=1)
