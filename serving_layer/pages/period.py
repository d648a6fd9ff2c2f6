"""The period of a page: which days, what they are compared with, and how finely they are drawn; all of it in the URL.

A page says days as people do: `first` and `last` are both included, where `from` and `to` of REST end before `to`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple, Self, cast
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from serving_layer.errors import BadQuestionError
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop
from serving_layer.query.ranges import Dates, RangeName, named_dates
from views.core.local_time import FIRST_YEAR, LAST_YEAR, ONE_DAY, BusinessDays

Preset = Literal[
    "today", "yesterday", "last_7_days", "last_28_days", "month_to_date", "quarter_to_date", "year_to_date"
]
Compare = Literal["previous_week", "previous_period", "previous_year", "none"]
PageGrain = Literal["hour", "day", "week", "month"]
PRESETS: dict[Preset, str] = {
    "today": gettext_noop("Today"),
    "yesterday": gettext_noop("Yesterday"),
    "last_7_days": gettext_noop("7 days"),
    "last_28_days": gettext_noop("28 days"),
    "month_to_date": gettext_noop("This month"),
    "quarter_to_date": gettext_noop("This quarter"),
    "year_to_date": gettext_noop("This year"),
}
COMPARISONS: dict[Compare, str] = {
    "previous_week": gettext_noop("Previous week"),
    "previous_period": gettext_noop("Previous period"),
    "previous_year": gettext_noop("Previous year"),
    "none": gettext_noop("No comparison"),
}
COMPARED: dict[Compare, str] = {
    "previous_week": gettext_noop("compared with the previous week"),
    "previous_period": gettext_noop("compared with the previous period"),
    "previous_year": gettext_noop("compared with the previous year"),
    "none": "",
}
LINES_BEFORE: dict[Compare, str] = {
    "previous_week": gettext_noop("previous week"),
    "previous_period": gettext_noop("previous period"),
    "previous_year": gettext_noop("previous year"),
    "none": "",
}
"""The name of the line of a chart that is compared with. Not every language makes it from a title by small letters."""
GRAIN_NAMES: dict[PageGrain, str] = {
    "hour": gettext_noop("Hours"),
    "day": gettext_noop("Days"),
    "week": gettext_noop("Weeks"),
    "month": gettext_noop("Months"),
}
BOUNDS: dict[PageGrain, tuple[int, int]] = {"hour": (1, 14), "day": (2, 400), "week": (14, 3660), "month": (32, 3660)}
"""How many days a page must and may have to be drawn with that grain: so that a line has points, and not too many."""
USUAL: Sequence[tuple[int, PageGrain]] = ((1, "hour"), (92, "day"), (3660, "week"))
"""Up to how many days a grain is the one that is shown first."""
MAX_DAYS = 3660
USUAL_RANGE: Literal["today"] = "today"
"""That of an address without any."""


class PeriodFilter(BaseModel):
    """The query parameters of a period. Empty fields are as good as absent, because a form sends all of its fields."""

    model_config = ConfigDict(populate_by_name=True)

    range: Preset | Literal["", "custom"] = ""
    first: date | Literal[""] = ""
    last: date | Literal[""] = ""
    day: date | Literal[""] = Field("", description="Instead of `first` and `last`, if both are this day.")
    compare: Compare | Literal[""] = ""
    grain: PageGrain | Literal[""] = ""


class PresetLink(NamedTuple):
    """A range to choose. `query`: of the address that shows it."""

    name: str
    query: str
    is_current: bool


@dataclass(frozen=True)
class PagePeriod:
    """What a page is about.

    Attributes:
        dates: local business days.
        today: the business day under way, at the place that the page is about; the earliest one, if it has several.
        latest: the latest one. In a chain of several time zones tomorrow may have begun already.
        preset: None if the days were chosen.
        compare: what the days are compared with.
        grain: how finely they are drawn.
        asked: the query parameters.
    """

    dates: Dates
    today: date
    latest: date
    preset: Preset | None
    compare: Compare
    grain: PageGrain
    asked: PeriodFilter

    @classmethod
    def of(cls, asked: PeriodFilter, days: BusinessDays, today: date, *, latest: date | None = None) -> Self:
        """Read the period of a request.

        Args:
            asked: the query parameters.
            days: say on which weekday a week starts.
            today: the business day under way, from which ranges are counted; the earliest one, if there are several.
            latest: the latest one; None: it is the same.

        Raises:
            BadQuestionError: the days are reversed, too many, or out of the calendar, or too many for the grain.
        """
        preset, dates = _dates(asked, days, today)
        number = (dates.end - dates.start).days
        if number > MAX_DAYS:
            raise BadQuestionError(
                f"{number:,} days are too many for one page.", do=f"Choose at most {MAX_DAYS:,} days: about ten years."
            )
        usual_grain = next(grain for most, grain in USUAL if number <= most)
        grain = asked.grain or usual_grain
        least, most = BOUNDS[grain]
        if not least <= number <= most and grain != usual_grain:
            message = f"`grain={grain}` needs {least} to {most:,} days, and the page is about {number:,}."
            raise BadQuestionError(message, do="Choose other days, or leave `grain` out.")
        compare = asked.compare or ("previous_week" if number == 1 else "previous_period")
        return cls(dates, today, latest or today, preset, compare, grain, asked)

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.dates.end - self.dates.start).days

    @property
    def first(self) -> date:
        """Its first day."""
        return self.dates.start

    @property
    def last(self) -> date:
        """Its last day, which belongs to it."""
        return self.dates.end - ONE_DAY

    @property
    def includes_today(self) -> bool:
        """Whether its numbers still grow."""
        return self.first <= self.latest and self.today <= self.last

    @property
    def is_ahead(self) -> bool:
        """Whether it has not begun anywhere."""
        return self.first > self.latest

    @property
    def compared_with(self) -> str | None:
        """As REST has it; None for nothing."""
        return None if self.compare == "none" else self.compare

    @property
    def grains(self) -> Sequence[PageGrain]:
        """The grains that it can be drawn with."""
        fitting = [grain for grain, (least, most) in BOUNDS.items() if least <= self.days <= most]
        return fitting or [self.grain]

    @property
    def before(self) -> "dict[str, str]":
        """As many days just before: query parameters."""
        return self._moved(-self.days)

    @property
    def after(self) -> "dict[str, str] | None":
        """As many days just after; None if they have not begun."""
        return None if self.dates.end > self.latest else self._moved(self.days)

    def moved(self, days: int) -> Dates:
        """Its dates, that many days later."""
        return Dates(self.dates.start + ONE_DAY * days, self.dates.end + ONE_DAY * days)

    @property
    def compared(self) -> str:
        """What its changes are of, within a sentence; empty for nothing."""
        return _(COMPARED[self.compare]) if COMPARED[self.compare] else ""

    @property
    def line_before(self) -> str:
        """The name of the line of a chart that it is compared with; empty for none."""
        return _(LINES_BEFORE[self.compare]) if LINES_BEFORE[self.compare] else ""

    @property
    def compared_dates(self) -> Dates | None:
        """The dates that it is compared with, as far as these are a fixed number of days before; None if not."""
        if self.compare not in ("previous_week", "previous_period"):
            return None
        return self.moved(-7 if self.compare == "previous_week" else -self.days)

    def _moved(self, days: int) -> dict[str, str]:
        first, last = self.first + ONE_DAY * days, self.last + ONE_DAY * days
        named = {"day": first.isoformat()} if first == last else {"first": first.isoformat(), "last": last.isoformat()}
        return named | self.kept

    @property
    def kept(self) -> dict[str, str]:
        """What stays when other days are chosen: the comparison, if one was chosen."""
        return {"compare": self.asked.compare} if self.asked.compare else {}

    @property
    def own(self) -> dict[str, str]:
        """The query parameters of this period, without those that are usual."""
        return self.asked.model_dump(mode="json", include=set(PeriodFilter.model_fields), exclude_defaults=True)

    def address(self, others: dict[str, str], **changes: str) -> str:
        """The query of an address with some parameters of this period changed. `others`: of the page, which stay."""
        return urlencode({**self.own, **changes, **others})

    def presets(self, others: dict[str, str]) -> Sequence[PresetLink]:
        """The ranges to choose. `others`: query parameters of the page that stay."""
        return [
            PresetLink(_(name), urlencode({"range": preset, **self.kept, **others}), preset == self.preset)
            for preset, name in PRESETS.items()
        ]


def _dates(asked: PeriodFilter, days: BusinessDays, today: date) -> tuple[Preset | None, Dates]:
    if asked.day:
        return None, _days(asked.day, asked.day)
    if asked.range not in ("", "custom"):
        preset = cast("Preset", asked.range)
        return preset, named_dates(cast("RangeName", preset), today, days)
    if asked.first or asked.last:
        first = asked.first or asked.last
        last = asked.last or asked.first
        if not isinstance(first, date) or not isinstance(last, date):
            raise BadQuestionError("A period needs a day.", do="Choose the first and the last day.")
        return None, _days(first, last)
    return USUAL_RANGE, named_dates(USUAL_RANGE, today, days)


def _days(first: date, last: date) -> Dates:
    if first > last:
        raise BadQuestionError(f"The first day, {first}, is after the last one, {last}.", do="Swap `first` and `last`.")
    if first.year <= FIRST_YEAR or last.year >= LAST_YEAR:
        message = f"There is no data from {first} to {last}."
        raise BadQuestionError(message, do=f"Choose days from {FIRST_YEAR + 1} to {LAST_YEAR - 1}.")
    return Dates(first, last + ONE_DAY)
