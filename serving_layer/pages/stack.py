"""`/stack`: whether all readers move, how far behind they are, and which alarms stand."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from fastapi import Response

from serving_layer.health.freshness import FreshnessReport
from serving_layer.health.watched import READERS, LagMeasurement
from serving_layer.pages.routing import ReaderVisit, routes

router = routes()
SILENT = timedelta(seconds=60)
"""A reader measures itself more often."""
LATE = timedelta(seconds=30)
"""There is always something that has just come: only what waits longer than a reader's usual round is behind."""


class Component(NamedTuple):
    """A process as it is seen from here: by what it wrote down last. `state`: running, behind, silent or never seen."""

    name: str
    does: str
    state: str
    said: str


@router.get("/stack")
async def get_stack(visit: ReaderVisit) -> Response:
    """What the processes say of themselves."""
    fresh = await visit.fresh()
    lag = sorted(fresh.lag, key=lambda each: (each.reader, each.topic, each.partition))
    said = {"components": components(fresh), "lag": lag, "topics": topics(lag), "readers": READERS}
    return visit.page("stack.html", fresh, said)


class Behind(NamedTuple):
    """How many records of a topic a reader has still to read, and for how many seconds the oldest of them waits."""

    records: int
    seconds: float


def topics(lag: Sequence[LagMeasurement]) -> Sequence[tuple[str, Sequence[Behind | None]]]:
    """By topic, for each of READERS; None where a reader has not measured itself."""
    told = []
    for topic in sorted({each.topic for each in lag}):
        found = [[each for each in lag if (each.topic, each.reader) == (topic, reader)] for reader in READERS]
        told.append((topic, [_behind(of) if of else None for of in found]))
    return told


def _behind(of: Sequence[LagMeasurement]) -> Behind:
    return Behind(sum(each.records for each in of), max(each.seconds for each in of))


def components(fresh: FreshnessReport) -> Sequence[Component]:
    """The readers by their measurements, the store and this interface by the answer itself."""
    does = {"archive": "writes the master dataset", "speed": "makes provisional cells"}
    readers = [
        _reader(name, does[name], [each for each in fresh.lag if each.reader == name], fresh) for name in READERS
    ]
    store = Component("cassandra", "keeps cells and the pointer", "running", "answered just now")
    return [*readers, store, Component("api", "answers, and shows this page", "running", "answered just now")]


def _reader(name: str, does: str, measured: Sequence[LagMeasurement], fresh: FreshnessReport) -> Component:
    if not measured:
        return Component(name, does, "never seen", "has not measured itself yet")
    age = fresh.at - max(each.measured_at for each in measured)
    behind = _behind(measured)
    said = f"{behind.records:,} record{'s' * (behind.records != 1)} to read, the oldest for {behind.seconds:.1f} s"
    if age > SILENT:
        return Component(name, does, "silent", f"last heard of {int(age.total_seconds())} s ago; {said}")
    state = "behind" if behind.seconds > LATE.total_seconds() else "running"
    return Component(name, does, state, said if behind.records else "has read everything")
