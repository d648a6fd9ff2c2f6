"""What the metric's own answer shows: every point with the conditions under which it came about."""

from bisect import bisect_right
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from serving_layer.index.conditions import Conditions, weather
from serving_layer.index.question import IndexGrain
from serving_layer.query.resolved_query import Asked
from serving_layer.responses.metrics import Holidays, MetricResponse, Value, Weather
from views.core.business_days import Span
from views.core.local_time import clock


class Seen(NamedTuple):
    """`value`: as the metric shows it. `is_final`: neither it nor its weather can still change."""

    span: Span
    start: str
    value: float | None
    conditions: Conditions
    is_final: bool
    flags: tuple[str, ...]


def seen(asked: Asked, grain: IndexGrain, response: MetricResponse) -> Iterator[Seen]:
    """The points of an answer about one store, with weather and holidays beside them, in order."""
    [of], [series] = asked.stores, response.series
    observed = {row.start: row for row in _weather_of(response).rows}
    names = {row.date: tuple(row.names) for row in holidays_of(response).rows}
    days = list(of.at.days.touched(of.at.span))
    starts = [day.start for _, day in days]
    for span, point in zip(of.timeline.bounds, series.points, strict=True):
        day = days[bisect_right(starts, span.start) - 1][0]
        hour = clock(of.at.days.zone, span.start).hour if grain == "hour" else None
        row = observed.get(point.start)
        conditions = Conditions(day, (day.isoweekday(), hour), *weather(row, grain), names.get(day, ()))
        is_final = point.final and (row is None or row.final)
        yield Seen(span, point.start, _number(point.value), conditions, is_final, tuple(point.flags or ()))


def holidays_of(response: MetricResponse) -> Holidays:
    """Those that stand beside the points: the model always asks for them."""
    assert response.context  # noqa: S101
    return response.context["holidays"]


def _weather_of(response: MetricResponse) -> Weather:
    assert response.context  # noqa: S101
    return response.context["weather"]


def _number(value: Value) -> float | None:
    """As JSON would give it back: money is a number of two decimals there, and the nearest double here."""
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, int | float) else None
