"""Terms that need windows one by one, in order: how many people are inside, and which hours of the week hold most."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from serving_layer.query.aggregate import PointStates
from serving_layer.timeline import Period
from views.core.formula import FormulaValue, Term, busiest, inside
from views.core.local_time import STEP, BusinessDays, Span, clock

DRIFT_HIGH = "drift_high"
LEAST_SHARE = 20
"""A drift above a twentieth, 5 %, of the people who came in is high."""


class TermValue(NamedTuple):
    """The value of a term at a point. `flags`: of the business days that the point lies in."""

    value: FormulaValue
    is_provisional: bool
    flags: tuple[str, ...] = ()


class _Occupancy(NamedTuple):
    """How many people are inside at the end of a window."""

    inside: int
    is_provisional: bool
    flags: tuple[str, ...]


def term_values(
    term: Term, windows: Mapping[int, PointStates], period: Period, days: BusinessDays
) -> dict[int, TermValue]:
    """The value of a term per point. A point that has not begun has none.

    Args:
        term: `inside`, `most_inside` or `busiest`.
        windows: states by the start of their window, from the start of the first business day.
        period: the windows that count.
        days: the business days of the query.
    """
    if term.function == "busiest":
        return _busiest_hours(term, windows, period, days)
    pick: Callable[[list[int]], int] = max if term.function == "most_inside" else _last
    points: dict[int, list[_Occupancy]] = {}
    occupancy = dict(_occupancy(windows, period, days))
    for window in period.windows():
        points.setdefault(period.timeline.point_of(window), []).append(occupancy[window])
    return {
        point: TermValue(
            Fraction(pick([each.inside for each in of])),
            any(each.is_provisional for each in of),
            tuple(sorted({flag for each in of for flag in each.flags})),
        )
        for point, of in points.items()
    }


def _last(values: list[int]) -> int:
    return values[-1]


def _occupancy(
    windows: Mapping[int, PointStates], period: Period, days: BusinessDays
) -> Iterator[tuple[int, _Occupancy]]:
    """Every window of the business days that the period touches, each day from its start."""
    for _, day in days.touched(Span(period.timeline.start, period.timeline.end)):
        starts = range(day.start, min(day.end, period.begun), STEP)
        flows = [_flow(windows.get(window)) for window in starts]
        flags = (DRIFT_HIGH,) if day.end <= period.over and _is_drift_high(flows) else ()
        is_provisional = False
        for window, number in zip(starts, inside(flows), strict=True):
            point = windows.get(window)
            is_provisional = is_provisional or (point is not None and point.is_provisional)
            yield window, _Occupancy(number, is_provisional, flags)


def _flow(point: PointStates | None) -> tuple[int, int]:
    if point is None:
        return 0, 0
    people_in, people_out = point.states
    return int(people_in or 0), int(people_out or 0)


def _is_drift_high(flows: list[tuple[int, int]]) -> bool:
    people_in, people_out = (sum(each[direction] for each in flows) for direction in (0, 1))
    return LEAST_SHARE * abs(people_in - people_out) > people_in


def _busiest_hours(
    term: Term, windows: Mapping[int, PointStates], period: Period, days: BusinessDays
) -> dict[int, TermValue]:
    hours: dict[int, dict[tuple[int, int], int]] = {}
    provisional: set[int] = set()
    for window, states in windows.items():
        if period.counts_in(window):
            local, point = clock(days.zone, window), period.timeline.point_of(window)
            of, hour = hours.setdefault(point, {}), (local.isoweekday(), local.hour)
            of[hour] = of.get(hour, 0) + int(states.states[0] or 0)
            provisional |= {point} if states.is_provisional else set()
    return {point: TermValue(busiest(of, term.number), point in provisional) for point, of in hours.items()}
