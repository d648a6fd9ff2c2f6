"""What is drawn on the server, as geometry: heat maps, sparklines and the bar of provisional sales; and rows of charts.

`static/charts.js` draws charts from the same answers as the rows below them.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple, Self
from zoneinfo import ZoneInfo

from msgspec import UNSET

from serving_layer.pages import language
from serving_layer.pages.figures import Figure, figure, instant, rounded
from serving_layer.pages.language import gettext as _
from serving_layer.responses.metrics import Point, Value
from serving_layer.saved.annotations import Annotation
from serving_layer.timeline import Grain
from views.core.cut import seconds
from views.core.local_time import BusinessDays

MONDAY = date(2024, 1, 1)
SHADES = 5
MANY = 100
"""From this value on, a square of a heat map has no room for tenths."""
SPARK_WIDTH, SPARK_HEIGHT, SPARK_MARGIN = 300, 48, 5
"""As in `static/live.js`, which draws the same line again."""


class Scale(NamedTuple):
    """Shades of equal steps from the least to the greatest value."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[Value]) -> Self | None:
        """The scale of these values, of which None is unknown. None if no value is known."""
        known = [_number(value) for value in values if value is not None]
        return cls(min(known), max(known)) if known else None

    def shade(self, value: Value) -> int | None:
        """0 (least) to SHADES - 1; None if the value is unknown."""
        if value is None:
            return None
        part = (_number(value) - self.low) / ((self.high - self.low) or 1)
        return min(int(part * SHADES), SHADES - 1)

    def bounds(self, unit: str, code: str) -> Sequence[Figure]:
        """The least value of each shade, then the greatest of all."""
        step = (self.high - self.low) / SHADES
        return [figure(self.low + step * number, unit, code) for number in range(SHADES + 1)]


class Square(NamedTuple):
    """An hour of a heat map.

    `shade`: 0 (least) to SHADES - 1; None where the value is unknown. `short`: the value as it fits into the square.
    """

    hour: int
    shade: int | None
    figure: Figure
    short: str
    is_final: bool


class HeatMap(NamedTuple):
    """`rows`: each weekday with its squares. `bounds`: the least value of each shade, then the greatest of all."""

    hours: Sequence[int]
    rows: Sequence[tuple[str, Sequence[Square]]]
    bounds: Sequence[Figure]


def heat_map(points: Sequence[Point], unit: str, code: str) -> HeatMap | None:
    """Points of the grain `hour_of_week` as a row per weekday and a column per hour. None if no value is known.

    Hours before the first and after the last known value are left out.
    """
    known = {(point.weekday, point.hour): point for point in points if point.value is not None}
    scale = Scale.of([point.value for point in known.values()])
    if scale is None:
        return None
    hours = [point.hour for point in known.values() if isinstance(point.hour, int)]
    columns = range(min(hours), max(hours) + 1)
    digits, unknown = 0 if scale.high >= MANY else 1, figure(None, unit, code)

    def square(day: int, hour: int) -> Square:
        point = known.get((day, hour))
        if point is None:
            return Square(hour, None, unknown, unknown.number, is_final=True)
        short = rounded(_number(point.value), digits)
        return Square(hour, scale.shade(point.value), figure(point.value, unit, code), short, point.final)

    names = [language.day(MONDAY + timedelta(days=number), "E") for number in range(7)]
    rows = [(name, [square(day, hour) for hour in columns]) for day, name in enumerate(names, 1)]
    return HeatMap(columns, rows, scale.bounds(unit, code))


class Sparkline(NamedTuple):
    """`final`, `provisional`: SVG paths. `end`: x and y of the last value, None if it is unknown."""

    final: str
    provisional: str
    end: tuple[float, float] | None
    is_final: bool


def sparkline(points: Sequence[Point]) -> Sparkline:
    """A line through the values of a series, with gaps where values are unknown.

    Zero is at the bottom, unless a value is below it.
    """
    values = [None if point.value is None else _number(point.value) for point in points]
    known = [value for value in values if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    step = (SPARK_WIDTH - 2 * SPARK_MARGIN) / max(len(points) - 1, 1)
    scale = (SPARK_HEIGHT - 2 * SPARK_MARGIN) / ((high - low) or 1)

    def position(number: int, value: float) -> tuple[float, float]:
        x, y = SPARK_MARGIN + number * step, SPARK_HEIGHT - SPARK_MARGIN - (value - low) * scale
        return round(x, 1), round(y, 1)

    positions = [None if value is None else position(number, value) for number, value in enumerate(values)]
    final: list[str] = []
    provisional: list[str] = []
    for (one, _before), (two, point) in pairwise(zip(positions, points, strict=True)):
        if one and two:
            (final if point.final else provisional).append(f"M{one[0]} {one[1]}L{two[0]} {two[1]}")
    is_final = bool(points) and points[-1].final
    return Sparkline("".join(final), "".join(provisional), positions[-1] if positions else None, is_final)


class ChartRow(NamedTuple):
    """A point of a chart.

    `before`: what it is compared with, None if that is unknown or nothing. `ends`: when it is over in every store, if
    they have several clocks; None: when the next one begins.
    """

    label: str
    point: Point
    before: Value
    ends: datetime | None = None


def chart_rows(points: Sequence[Point], earlier: Sequence[Point], grain: Grain, zone: str) -> list[ChartRow]:
    """The points of a series with their labels, and with what they are compared with.

    Args:
        points: those of the period.
        earlier: those of the days that it is compared with, at the grain `hour`. Hours belong together by their clock,
            so that a day on which clocks change is compared hour by hour. At other grains, points say it themselves.
        grain: of both.
        zone: in which hours are written that do not say their local time; empty if the stores have several.
    """
    places = _places(points, zone)
    known = dict(reversed(list(zip(_places(earlier, zone), earlier, strict=True))))  # where clocks go back: the first
    has_days = len({day for day, _clock in places}) > 1
    rows = []
    for place, point in zip(places, points, strict=True):
        before = known[place].value if place in known else None if point.before is UNSET else point.before
        rows.append(ChartRow(label(point, grain, zone, has_days=has_days), point, before))
    return rows


def label(point: Point, grain: Grain, zone: str, *, has_days: bool) -> str:
    """When a point begins, as readers say it. `has_days`: whether hours need their day."""
    if grain in ("hour", "15m"):
        local = _there(point, zone).replace(tzinfo=UTC)  # as the clocks of the stores say it, wherever they are
        return language.moment(local, "UTC") if has_days else language.clock(local, "UTC")
    begins = point.business_date
    if not isinstance(begins, date):
        return language.clock(instant(point.start), zone or "UTC", "d MMM")
    if grain == "week":
        return _("week of {day}").format(day=language.day(begins, "MMMd"))
    return language.day(begins, {"month": "yMMM", "year": "y"}.get(grain, "MMMEd"))


def with_ends(rows: Sequence[ChartRow], grain: Grain, days: Collection[BusinessDays], end: date) -> list[ChartRow]:
    """The points of stores with several clocks, which begin where clocks are ahead and end where they are behind.

    Args:
        rows: the points, in order.
        grain: of the points.
        days: the business days of the stores.
        end: the day after the last one.
    """

    def over(number: int, row: ChartRow) -> int:
        if grain in ("hour", "15m"):
            local, length = _there(row.point, "UTC"), timedelta(hours=1) if grain == "hour" else timedelta(minutes=15)
            # Of an hour that a clock passes twice, the second pass.
            return max(seconds(local.replace(tzinfo=each.zone, fold=1).astimezone(UTC) + length) for each in days)
        following = rows[number + 1].point.business_date if number + 1 < len(rows) else end
        return max(each.start(following if isinstance(following, date) else end) for each in days)

    return [row._replace(ends=datetime.fromtimestamp(over(number, row), UTC)) for number, row in enumerate(rows)]


def begun(rows: Sequence[ChartRow], until: datetime) -> list[ChartRow]:
    """Those of points that have begun: later ones have no data yet."""
    return [row for row in rows if (at := instant(row.point.start)) is None or at <= until]


def highest(rows: Sequence[ChartRow]) -> ChartRow | None:
    """The one with the greatest value; None if no value is known."""
    known = [row for row in rows if row.point.value is not None]
    return max(known, key=lambda row: _number(row.point.value), default=None)


def drawn(rows: Sequence[ChartRow]) -> Sequence[Mapping[str, object]]:
    """The rows as `static/charts.js` draws them."""
    return [
        {
            "start": row.point.start,
            "date": row.point.business_date if isinstance(row.point.business_date, date) else None,
            "local": row.point.local if isinstance(row.point.local, str) else None,
            "ends": row.ends,
            "label": row.label,
            "value": row.point.value,
            "before": row.before,
            "final": row.point.final,
        }
        for row in rows
    ]


def annotated_days(annotations: Sequence[Annotation]) -> Sequence[tuple[date, date]]:
    """First and last day of annotations, in the order in which the page numbers them."""
    return [(each.first_day, each.last_day) for each in annotations]


def _places(points: Sequence[Point], zone: str) -> list[tuple[int, str]]:
    """Of each point the day of its series, from 0, and the local clock."""
    there = [_there(point, zone) for point in points]
    return [((at.date() - there[0].date()).days, f"{at:%H:%M}") for at in there]


def _there(point: Point, zone: str) -> datetime:
    at = datetime.fromisoformat(point.local) if isinstance(point.local, str) else None
    return at or datetime.fromisoformat(point.start).astimezone(ZoneInfo(zone or "UTC"))


def provisional_share(points: Sequence[Point]) -> float | None:
    """How much of a sum is in provisional points, in percent; None if the sum is nothing.

    Points count by size, not by sign, because an hour with more returns than sales can change as well.
    """
    sizes = [(abs(_number(point.value or 0)), point.final) for point in points]
    whole = sum(size for size, _ in sizes)
    return 100 * sum(size for size, is_final in sizes if not is_final) / whole if whole else None


def _number(value: Value) -> float:
    """A value of a metric that is no list."""
    return float(value)  # type: ignore[arg-type]
