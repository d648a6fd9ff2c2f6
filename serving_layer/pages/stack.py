"""`/stack`: whether all readers are running, how far behind they are, and which alarms are active."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from fastapi import Response

from serving_layer.health.freshness import FreshnessReport
from serving_layer.health.watched import READERS, LagMeasurement
from serving_layer.pages.routing import ReaderVisit, page_router

router = page_router()
SILENT_AFTER = timedelta(seconds=60)
"""A running reader measures itself more often."""
BEHIND_AFTER = timedelta(seconds=30)
"""Some records have always just arrived: a reader is behind only if one waits longer than its usual round."""
ROLES = {"archive": "writes the master dataset", "speed": "computes provisional cells"}


class Component(NamedTuple):
    """A process, judged by what it last wrote. `state`: running, behind, silent or never seen."""

    name: str
    role: str
    state: str
    detail: str


class TopicBacklog(NamedTuple):
    """How many records of a topic a reader has not read, and for how many seconds the oldest of them has waited."""

    records: int
    seconds: float


@router.get("/stack")
async def get_stack(visit: ReaderVisit) -> Response:
    """What the processes report."""
    fresh = await visit.fresh()
    lag = sorted(fresh.lag, key=lambda each: (each.reader, each.topic, each.partition))
    values = {"components": components(fresh), "lag": lag, "topics": backlog_by_topic(lag), "readers": READERS}
    return visit.page("stack.html", fresh, values)


def backlog_by_topic(lag: Sequence[LagMeasurement]) -> Sequence[tuple[str, Sequence[TopicBacklog | None]]]:
    """Each topic with its backlog for each of READERS; None where a reader has not measured itself."""
    rows = []
    for topic in sorted({each.topic for each in lag}):
        measured = [[each for each in lag if (each.topic, each.reader) == (topic, reader)] for reader in READERS]
        rows.append((topic, [_backlog(each) if each else None for each in measured]))
    return rows


def _backlog(measured: Sequence[LagMeasurement]) -> TopicBacklog:
    return TopicBacklog(sum(each.records for each in measured), max(each.seconds for each in measured))


def components(fresh: FreshnessReport) -> Sequence[Component]:
    """The readers by their measurements; Cassandra and the API are running, or there would be no page."""
    readers = [_reader(name, [each for each in fresh.lag if each.reader == name], fresh) for name in READERS]
    cassandra = Component("cassandra", "stores cells and the pointer", "running", "answered just now")
    return [
        *readers,
        cassandra,
        Component("api", "answers queries and serves this page", "running", "answered just now"),
    ]


def _reader(name: str, measured: Sequence[LagMeasurement], fresh: FreshnessReport) -> Component:
    role = ROLES[name]
    if not measured:
        return Component(name, role, "never seen", "has not reported yet")
    age = fresh.at - max(each.measured_at for each in measured)
    backlog = _backlog(measured)
    plural = "s" * (backlog.records != 1)
    detail = f"{backlog.records:,} record{plural} to read, the oldest waiting for {backlog.seconds:.1f} s"
    if age > SILENT_AFTER:
        return Component(name, role, "silent", f"last report {int(age.total_seconds())} s ago; {detail}")
    state = "behind" if backlog.seconds > BEHIND_AFTER.total_seconds() else "running"
    return Component(name, role, state, detail if backlog.records else "has read everything")
