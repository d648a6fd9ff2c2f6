"""`/stack`: whether all readers move, how far behind they are, and which alarms stand."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from fastapi import Response

from serving_layer.freshness import Fresh
from serving_layer.pages.page_route import routes
from serving_layer.pages.visit import ReaderVisit
from serving_layer.watched import READERS, Measured

router = routes()
SILENT = timedelta(seconds=60)
"""A reader measures itself more often."""


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
    return visit.page("stack.html", fresh, {"components": components(fresh), "lag": lag})


def components(fresh: Fresh) -> Sequence[Component]:
    """The readers by their measurements, the store and this interface by the answer itself."""
    does = {"archive": "writes the master dataset", "speed": "makes provisional cells"}
    readers = [
        _reader(name, does[name], [each for each in fresh.lag if each.reader == name], fresh) for name in READERS
    ]
    store = Component("cassandra", "keeps cells and the pointer", "running", "answered just now")
    return [*readers, store, Component("api", "answers, and shows this page", "running", "answered just now")]


def _reader(name: str, does: str, measured: Sequence[Measured], fresh: Fresh) -> Component:
    if not measured:
        return Component(name, does, "never seen", "has not measured itself yet")
    age = fresh.at - max(each.measured_at for each in measured)
    records = sum(each.records for each in measured)
    waiting = max(each.seconds for each in measured)
    said = f"{records:,} records to read, the oldest for {waiting:.1f} s"
    if age > SILENT:
        return Component(name, does, "silent", f"last heard of {int(age.total_seconds())} s ago; {said}")
    return Component(name, does, "behind" if records else "running", said if records else "has read everything")
