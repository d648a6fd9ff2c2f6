"""The exact value of every point: states summed first, then the formula."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from serving_layer.compare.comparable_stores import ENOUGH
from serving_layer.query.aggregate import Point, Totals
from serving_layer.query.period_data import SideRead
from serving_layer.query.resolved_query import ResolvedQuery, StoreTime
from serving_layer.query.sensor_coverage import HALF
from serving_layer.query.store_facts import StoreFacts
from serving_layer.query.window_terms import DRIFT_HIGH, Ordered, in_order
from views.core.formula import Worth
from views.core.local_time import STEP

NO_OPENING_HOURS, NO_SOURCE, LOW_COVERAGE, MASKED, DEVICE_DAYS = (
    "no_opening_hours",
    "no_source",
    "low_coverage",
    "masked",
    "device_days",
)
Dimensions = Mapping[str, str | None]


class PointValue(NamedTuple):
    """Money in minor units. `is_provisional`: speed rows are in it."""

    value: Worth
    flags: tuple[str, ...]
    is_provisional: bool


class Found(NamedTuple):
    """What is there at one point. `is_there`: any cell is."""

    worth: dict[str, Worth]
    flags: tuple[str, ...]
    is_there: bool
    is_provisional: bool


def evaluate(asked: ResolvedQuery, of: StoreTime, read: SideRead, dimensions: Dimensions) -> list[PointValue]:
    """The points of one series, in the places of the question."""
    metric = asked.metric
    why_null = _why_null(asked, of, read)
    is_watched = LOW_COVERAGE in metric.flags and read.sensors.is_expected
    shares = read.sensors.shares(read.side) if is_watched else {}
    reckoned = []
    for number, found in enumerate(_found(asked, of, read, dimensions)):
        if why_null:
            reckoned.append(PointValue(None, (why_null,), found.is_provisional))
            continue
        value, flags = metric.value(found.worth)
        if not metric.formula.is_sum and not found.is_there:
            value = None
        flags = tuple(flag for flag in (*flags, *found.flags) if flag != DRIFT_HIGH or _is_over(of, read, number))
        if DEVICE_DAYS in metric.flags and _has_many_days(of, number):
            flags += (DEVICE_DAYS,)
        value, flags = _trusted(value, flags, shares.get(number, ENOUGH))
        reckoned.append(PointValue(value, flags, found.is_provisional))
    return reckoned


def _why_null(asked: ResolvedQuery, of: StoreTime, read: SideRead) -> str | None:
    """Why no point has a value: what was asked for is not known of this store at all."""
    if asked.hours_asked and not of.store.opening_hours:
        return NO_OPENING_HOURS
    counts_sensors = "store.expected_ms" in asked.metric.facts
    return None if counts_sensors or read.has_sources(of.store) else NO_SOURCE


def _trusted(value: Worth, flags: tuple[str, ...], share: Fraction) -> tuple[Worth, tuple[str, ...]]:
    """With how much of the sensor time was covered."""
    if share >= ENOUGH:
        return value, flags
    return (value, (*flags, LOW_COVERAGE)) if share >= HALF else (None, (*flags, LOW_COVERAGE, MASKED))


def _found(asked: ResolvedQuery, of: StoreTime, read: SideRead, dimensions: Dimensions) -> Iterator[Found]:
    facts = StoreFacts(of.store, read, asked.metric.facts)
    summed = [(total, total.at(dimensions)) for total in read.totals if not total.is_by_window]
    walked = {
        term.text: in_order(term, total.at(dimensions), read.side, of.at.days)
        for total in read.totals
        if total.is_by_window
        for term in total.terms
    }
    for number in range(len(of.timeline.bounds)):
        points = [(total, points.get(number)) for total, points in summed]
        ordered = {text: found.get(number) for text, found in walked.items()}
        yield _at(facts.at(number), points, ordered)


def _at(
    facts: dict[str, Worth], points: list[tuple[Totals, Point | None]], ordered: Mapping[str, Ordered | None]
) -> Found:
    worth = dict(facts)
    for total, point in points:
        worth |= total.worth(point)
    worth |= {text: found.worth if found else None for text, found in ordered.items()}
    known = [found for found in ordered.values() if found]
    there = [point for _, point in points if point]
    return Found(
        worth,
        tuple(flag for found in known for flag in found.flags),
        bool(there or known),
        any(each.is_provisional for each in there) or any(each.is_provisional for each in known),
    )


def _is_over(of: StoreTime, read: SideRead, number: int) -> bool:
    """Whether the point is, so that nobody should be inside; what it is compared with always is."""
    return read.side.timeline is not of.timeline or of.timeline.bounds[number].end <= read.side.over


def _has_many_days(of: StoreTime, number: int) -> bool:
    bound, days = of.timeline.bounds[number], of.at.days
    return days.day_of(bound.start) != days.day_of(bound.end - STEP)
