"""The days that a report is about, as business dates of a tenant's stores."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self

from master_dataset.registry.stores import Store
from serving_layer.errors import BadQuestionError
from serving_layer.responses.reports import ReportDates, ReportPeriodName
from serving_layer.timeline import zone_named
from views.core.cut import seconds
from views.core.local_time import ONE_DAY, BusinessDays, round_down

LENGTHS: dict[ReportPeriodName, timedelta] = {"daily": ONE_DAY, "weekly": 7 * ONE_DAY}
TREND_POINTS: dict[ReportPeriodName, int] = {"daily": 14, "weekly": 8}
WEEK = timedelta(days=7)
FIRST_DAY = date(1971, 3, 1)
"""Eight weeks after the first day that metrics can be queried for: so far back goes the trend of its week."""


@dataclass(frozen=True)
class ReportPeriod:
    """The period of a report.

    Attributes:
        name: `daily` or `weekly`.
        start: the first business date.
        end: the business date after the last one.
        latest_day: the last business date that is over in every store.
        span: when the first store begins `start`, and when the last one ends the period.
        previous_end: when the last store ended the period before.
    """

    name: ReportPeriodName
    start: date
    end: date
    latest_day: date
    span: tuple[datetime, datetime]
    previous_end: datetime

    @classmethod
    def of(cls, name: ReportPeriodName, day: date | None, stores: Sequence[Store], now: datetime) -> Self:
        """The period that a day lies in. A week begins on the weekday on which it begins in most stores.

        Args:
            name: `daily` or `weekly`.
            day: a business date; None for the newest period that is over in every store.
            stores: all stores of the report; without any, days are those of UTC.
            now: the current time.

        Raises:
            BadQuestionError: the day has not begun, or is before the years that are kept.
        """
        days = [BusinessDays.of(store, zone_named(store.timezone)) for store in stores] or [BusinessDays(_UTC)]
        today = [each.day_of(round_down(seconds(now))) for each in days]
        latest = min(today) - ONE_DAY
        if day is not None and not FIRST_DAY <= day <= max(today):
            message = f"`day` is `{day}`, and reports are about days from {FIRST_DAY} to {max(today)}."
            raise BadQuestionError(message, do="Name one of these days, or leave `day` out.")
        if name == "weekly":
            [(first, _)] = Counter(each.week_starts_on for each in days).most_common(1)
            weeks = BusinessDays(_UTC, week_starts_on=first)
            start = weeks.week_of(latest + ONE_DAY) - WEEK if day is None else weeks.week_of(day)
        else:
            start = day or latest
        end = start + LENGTHS[name]
        starts = [each.start(start) for each in days]
        span = _instant(min(starts)), _instant(max(each.start(end) for each in days))
        return cls(name, start, end, latest, span, previous_end=_instant(max(starts)))

    @property
    def is_over(self) -> bool:
        """Whether it is over in every store."""
        return self.end <= self.latest_day + ONE_DAY

    @property
    def days(self) -> ReportDates:
        """Its dates."""
        return ReportDates(self.start, self.end - ONE_DAY)

    @property
    def compared(self) -> ReportDates:
        """The dates that it is compared with: the same weekdays of the week before."""
        return ReportDates(self.start - WEEK, self.end - WEEK - ONE_DAY)

    @property
    def trend_start(self) -> date:
        """The first date of the trend."""
        return self.end - LENGTHS[self.name] * TREND_POINTS[self.name]

    def published(self, now: datetime) -> tuple[datetime, datetime]:
        """When the corrections of this report were published: since the last store ended the period before.

        They end when the last store ends this period, whenever the report is made: so each publication belongs to one
        day and to one week, as long as the stores stay the same.
        """
        return self.previous_end, max(self.previous_end, min(now, self.span[1]))


_UTC = zone_named("UTC")


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)
