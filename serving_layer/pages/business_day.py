"""The business day that a page is about, and when the store is open on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Self

from master_dataset.registry.stores import WEEKDAYS, Store
from serving_layer.errors import BadQuestionError
from serving_layer.pages.language import gettext as _
from serving_layer.timeline import zone_named
from views.core.cut import seconds
from views.core.local_time import FIRST_YEAR, LAST_YEAR, ONE_DAY, BusinessDays, round_down


def require_kept(name: str, day: date | None) -> None:
    """Raise BadQuestionError if the day is not in the years that are kept. `name`: of the parameter; None: no day."""
    if day is not None and not FIRST_YEAR < day.year < LAST_YEAR:
        message = f"`{name}` is `{day}`, and the years {FIRST_YEAR + 1} to {LAST_YEAR - 1} are kept."
        raise BadQuestionError(message, do=f"Name a day of these years, or leave `{name}` out.")


@dataclass(frozen=True)
class BusinessDay:
    """A day of one store. `today`: the one that is under way, until `today_ends_at`."""

    day: date
    today: date
    today_ends_at: datetime

    @classmethod
    def of(cls, store: Store, now: datetime, day: date | None = None) -> Self:
        """That day, or today.

        Raises:
            BadQuestionError: the store's time zone is unknown, or the day is not in the years that are kept.
        """
        require_kept("day", day)
        days = BusinessDays.of(store, zone_named(store.timezone))
        today = days.day_of(round_down(seconds(now)))
        return cls(day or today, today, datetime.fromtimestamp(days.start(today + ONE_DAY), UTC))

    @property
    def is_today(self) -> bool:
        """Whether its numbers still grow."""
        return self.day == self.today

    @property
    def is_ahead(self) -> bool:
        """Whether it has not begun."""
        return self.day > self.today

    @property
    def start(self) -> str:
        """The start of a query for it, inclusive."""
        return self.day.isoformat()

    @property
    def end(self) -> str:
        """The end of a query for it, exclusive."""
        return (self.day + ONE_DAY).isoformat()

    @property
    def before(self) -> date:
        """The day before."""
        return self.day - ONE_DAY

    @property
    def after(self) -> date | None:
        """The day after; None if it has not begun."""
        return None if self.day >= self.today else self.day + ONE_DAY

    def back(self, days: int) -> str:
        """The day so many days before, as a query has it."""
        return (self.day - days * ONE_DAY).isoformat()


def open_periods(store: Store, day: date) -> Sequence[str]:
    """The periods that begin on that day; none if the store is closed or its hours are unknown."""
    return () if day in store.closed_on else store.opening_hours.get(WEEKDAYS[day.weekday()], ())


def is_closed(store: Store, day: date) -> bool:
    """Whether the store has opening hours, and none on that day."""
    return bool(store.opening_hours) and not open_periods(store, day)


def opening(store: Store, day: date) -> str:
    """When the store is open, as text; empty if its hours are unknown."""
    periods = open_periods(store, day)
    if periods:
        return _("open {hours}").format(hours=", ".join(each.replace("-", "\N{EN DASH}") for each in periods))
    return _("closed") if store.opening_hours else ""
