"""The exact value of every point: states summed first, then the formula."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from serving_layer.asked import Asked, StoreTime
from serving_layer.comparable_stores import ENOUGH
from serving_layer.in_order import Ordered, in_order
from serving_layer.local_time import STEP
from serving_layer.sensor_time import HALF
from serving_layer.side_read import SideRead
from serving_layer.store_facts import StoreFacts
from serving_layer.totals import Point, Totals
from views.core.listing import Worth

NO_OPENING_HOURS, NO_SOURCE, LOW_COVERAGE, MASKED, DEVICE_DAYS = (
    "no_opening_hours", "no_source", "low_coverage", "masked", "device_days"
)  # fmt: skip
Dimensions = Mapping[str, str | None]


class Reckoned(NamedTuple):
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


def reckon(asked: Asked, of: StoreTime, read: SideRead, dimensions: Dimensions) -> list[Reckoned]:
    """The points of one series, in the places of the question. Null, with a flag, if opening hours are not known."""
    metric = asked.metric
    has_sources = read.has_sources(of.store)
    is_watched = LOW_COVERAGE in metric.flags and read.sensors.is_expected
    shares = read.sensors.shares(read.side) if is_watched else {}
    reckoned = []
    for number, found in enumerate(_found(asked, of, read, dimensions)):
        if asked.hours_asked and not of.store.opening_hours:
            reckoned.append(Reckoned(None, (NO_OPENING_HOURS,), found.is_provisional))
            continue
        value, flags = metric.value(found.worth)
        flags += found.flags
        if not has_sources:
            value, flags = None, (NO_SOURCE,)
        if not metric.formula.is_sum and not found.is_there:
            value = None
        if DEVICE_DAYS in metric.flags and _has_many_days(of, number):
            flags += (DEVICE_DAYS,)
        share = shares.get(number, ENOUGH)
        if share < ENOUGH:
            value, flags = (None, (*flags, LOW_COVERAGE, MASKED)) if share < HALF else (value, (*flags, LOW_COVERAGE))
        reckoned.append(Reckoned(value, flags, found.is_provisional))
    return reckoned


def _found(asked: Asked, of: StoreTime, read: SideRead, dimensions: Dimensions) -> Iterator[Found]:
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


def _has_many_days(of: StoreTime, number: int) -> bool:
    bound, days = of.timeline.bounds[number], of.at.days
    return days.day_of(bound.start) != days.day_of(bound.end - STEP)
