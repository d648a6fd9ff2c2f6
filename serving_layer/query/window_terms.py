"""What needs windows one by one: how many are inside, and which hours of the week hold most."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from serving_layer.query.aggregate import Point
from serving_layer.query.period import Period
from views.core.formula import Term, Worth, busiest, inside
from views.core.local_time import STEP, BusinessDays, Span, clock

DRIFT_HIGH = "drift_high"
LEAST_SHARE = 20
"""A drift above a twentieth, 5 %, of the people who came in is high."""


class Ordered(NamedTuple):
    """What a term is worth at a point. `flags`: of the business days that it lies in."""

    worth: Worth
    is_provisional: bool
    flags: tuple[str, ...] = ()


class Window(NamedTuple):
    """How many are inside at its end."""

    held: int
    is_provisional: bool
    flags: tuple[str, ...]


def in_order(term: Term, windows: Mapping[int, Point], side: Period, days: BusinessDays) -> dict[int, Ordered]:
    """The term's worth per point; a point that has not begun has none. `windows`: by their start."""
    if term.function == "busiest":
        return _hours(term, windows, side, days)
    worth: Callable[[list[int]], int] = max if term.function == "most_inside" else _last
    found: dict[int, list[Window]] = {}
    held = dict(_walked(windows, side, days))
    for window in side.windows():
        found.setdefault(side.timeline.point_of(window), []).append(held[window])
    return {
        point: Ordered(
            Fraction(worth([each.held for each in of])),
            any(each.is_provisional for each in of),
            tuple(sorted({flag for each in of for flag in each.flags})),
        )
        for point, of in found.items()
    }


def _last(held: list[int]) -> int:
    return held[-1]


def _walked(windows: Mapping[int, Point], side: Period, days: BusinessDays) -> Iterator[tuple[int, Window]]:
    """Every window of the business days that the side touches, each day from its start."""
    for _, day in days.touched(Span(side.timeline.start, side.timeline.end)):
        starts = range(day.start, min(day.end, side.begun), STEP)
        flows = [_flow(windows.get(window)) for window in starts]
        flags = (DRIFT_HIGH,) if day.end <= side.over and _is_drift_high(flows) else ()
        is_provisional = False
        for window, held in zip(starts, inside(flows), strict=True):
            point = windows.get(window)
            is_provisional = is_provisional or (point is not None and point.is_provisional)
            yield window, Window(held, is_provisional, flags)


def _flow(point: Point | None) -> tuple[int, int]:
    if point is None:
        return 0, 0
    people_in, people_out = point.states
    return int(people_in or 0), int(people_out or 0)


def _is_drift_high(flows: list[tuple[int, int]]) -> bool:
    people_in, people_out = (sum(each[side] for each in flows) for side in (0, 1))
    return LEAST_SHARE * abs(people_in - people_out) > people_in


def _hours(term: Term, windows: Mapping[int, Point], side: Period, days: BusinessDays) -> dict[int, Ordered]:
    hours: dict[int, dict[tuple[int, int], int]] = {}
    provisional: set[int] = set()
    for window, point in windows.items():
        if side.counts_in(window):
            shown, place = clock(days.zone, window), side.timeline.point_of(window)
            of, hour = hours.setdefault(place, {}), (shown.isoweekday(), shown.hour)
            of[hour] = of.get(hour, 0) + int(point.states[0] or 0)
            provisional |= {place} if point.is_provisional else set()
    return {place: Ordered(busiest(of, term.number), place in provisional) for place, of in hours.items()}
