"""The business day that a page is about: today unless another one was asked for.

When a store is open on one of its days, in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self

from master_dataset.registry.stores import WEEKDAYS, Store
from serving_layer.query.timeline import zone_named
from views.core.cut import seconds
from views.core.local_time import BusinessDays, round_down

ONE = timedelta(days=1)
WEEK = 7 * ONE


@dataclass(frozen=True)
class BusinessDay:
    """Of one store. `today`: the one that lasts now, until `turns_at`."""

    day: date
    today: date
    turns_at: datetime

    @classmethod
    def of(cls, store: Store, now: datetime, asked: date | None = None) -> Self:
        """BadQuestionError if nobody knows the store's time zone."""
        days = BusinessDays.of(store, zone_named(store.timezone))
        today = days.day_of(round_down(seconds(now)))
        return cls(asked or today, today, datetime.fromtimestamp(days.start(today + ONE), UTC))

    @property
    def is_today(self) -> bool:
        """Whether its numbers still grow."""
        return self.day == self.today

    @property
    def start(self) -> str:
        """Inclusive, as a question says it."""
        return self.day.isoformat()

    @property
    def end(self) -> str:
        """Exclusive."""
        return (self.day + ONE).isoformat()

    @property
    def before(self) -> date:
        """The day before."""
        return self.day - ONE

    @property
    def after(self) -> date | None:
        """The day after; None while it has not come."""
        return None if self.day >= self.today else self.day + ONE

    def back(self, days: int) -> str:
        """So many days before it, as a question says it."""
        return (self.day - days * ONE).isoformat()


def periods_of(store: Store, day: date) -> Sequence[str]:
    """The periods that begin on that day; none if it is closed, or if nobody said."""
    return () if day in store.closed_on else store.opening_hours.get(WEEKDAYS[day.weekday()], ())


def opening(store: Store, day: date) -> str:
    """In words; empty if nobody said."""
    periods = periods_of(store, day)
    if periods:
        return f"open {', '.join(periods)}"
    return "closed" if store.opening_hours else ""
