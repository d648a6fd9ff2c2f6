"""A part of a page: a question, its answer or why there is none, and how it is called."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from serving_layer.pages.figures import Figure, figure, read_at
from serving_layer.pages.flag_words import DESCRIBING, in_words
from serving_layer.pages.page_answers import Refused, Told
from serving_layer.pages.question import Question
from serving_layer.query.evaluate import NO_SOURCE

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """`name`, `unit`: of the metric. `code`: the currency that money is in. `until`: what begins later has not been."""

    question: Question
    answer: Told | Refused
    name: str
    unit: str
    code: str
    until: datetime

    @property
    def refused(self) -> Refused | None:
        """Why there is nothing to show."""
        return self.answer if isinstance(self.answer, Refused) else None

    @property
    def series(self) -> Mapping[str, Any] | None:
        """Pages ask for one store at a time, unsplit."""
        return None if isinstance(self.answer, Refused) else next(iter(self.answer["series"]), None)

    @property
    def points(self) -> Sequence[Point]:
        """Those that have begun."""
        found: Sequence[Point] = self.series["points"] if self.series else ()
        return [point for point in found if _is_begun(point, self.until)]

    @property
    def last(self) -> Point | None:
        """Of a total the only one."""
        return self.points[-1] if self.points else None

    @property
    def has_source(self) -> bool:
        """Whether any sensor of the store feeds it."""
        return NO_SOURCE not in self._flags

    @property
    def flags(self) -> Sequence[str]:
        """In words, of the answer and of its last point."""
        found = self._flags if self.has_source else (NO_SOURCE,)  # how something is counted that is not, nobody asks
        return [in_words(flag) for flag in found if flag != "low_coverage" or "masked" not in found]

    @property
    def reasons(self) -> Sequence[str]:
        """Why there is no number, in words; none if nobody said."""
        return [in_words(flag) for flag in self._flags if flag not in DESCRIBING]

    @property
    def _flags(self) -> Collection[str]:
        whole = () if isinstance(self.answer, Refused) else self.answer.get("flags", ())
        return dict.fromkeys([*whole, *(self.last or {}).get("flags", ())])

    @property
    def end(self) -> Mapping[str, Any]:
        """The last point, whatever is known of it; empty if there is none."""
        return self.last or {}

    def by_clock(self, zone: str) -> Mapping[str, Any]:
        """The values of all points, also of those to come, by what the clock shows when they begin."""
        found = self.series["points"] if self.series else ()
        return {clock: point["value"] for point in found if (clock := _clock(point, zone))}

    def figure(self, value: Any) -> Figure:  # noqa: ANN401 - a number of JSON, or None
        """A value of this metric."""
        return figure(value, self.unit, self.code)

    @property
    def highest(self) -> Point | None:
        """The point with the greatest value."""
        known = [point for point in self.points if point["value"] is not None]
        return max(known, key=lambda point: float(point["value"]), default=None)

    @property
    def begins(self) -> datetime | None:
        """When the first point begins that says anything."""
        return next((read_at(point["start"]) for point in self.points if point["value"]), None)

    @property
    def is_empty(self) -> bool:
        """Whether no point says anything."""
        return not any(point["value"] for point in self.points)


def _is_begun(point: Point, until: datetime) -> bool:
    start = read_at(point["start"])
    return start is None or start <= until


def _clock(point: Point, zone: str) -> str:
    at = read_at(point["start"])
    return at.astimezone(ZoneInfo(zone)).strftime("%H:%M") if at else ""
