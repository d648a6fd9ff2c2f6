"""The work of a plan in portions: what is computed together, reported on, and not done again after an interruption."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable

from batch_layer.recompute.plan import Plan
from views.core.view import View

if TYPE_CHECKING:
    from batch_layer.recompute.touched import Master
    from master_dataset.source import Source

EVENTS_TOGETHER = 2_000_000
"""Half a minute of work: large enough that what each portion costs by itself does not show."""


@dataclass(frozen=True)
class Portion:
    """Days of one source, and the views to compute of each. `events`: archived rows per day, repeats included."""

    number: int
    source: "Source[Any]"
    work: tuple[tuple[View, frozenset[date]], ...]
    events: Mapping[date, int]

    @property
    def days(self) -> set[date]:
        """Those of any of its views."""
        return {day for _, days in self.work for day in days}

    @property
    def days_read(self) -> set[date]:
        """Of which days events are read to compute them."""
        return {day for view, days in self.work for day in view.days_read(days)}

    def events_of(self, days: Iterable[date]) -> int:
        """How many rows these days have."""
        return sum(self.events.get(day, 0) for day in days)


def portions(plan: Plan, together: int = EVENTS_TOGETHER) -> list[Portion]:
    """The whole work, always cut in the same way: a plan names the versions of the tables. No day is in two."""
    found: list[Portion] = []
    for source in plan.sources:
        work = [(view, days) for view, days in plan.work if view.source.topic == source.topic and days]
        events = events_by_day(plan.masters[source.topic])
        for days in _together(sorted({day for _, own in work for day in own}), events, together):
            own = tuple((view, frozenset(of_view & days)) for view, of_view in work if of_view & days)
            found.append(Portion(len(found), source, own, {day: events.get(day, 0) for day in days}))
    return found


def events_by_day(master: "Master") -> dict[date, int]:
    """How many rows a table has for each day, by its log alone."""
    counted: dict[date, int] = {}
    actions = pa.table(DeltaTable(master.path, version=master.version).get_add_actions(flatten=True))
    for file in actions.select(["partition.day", "num_records"]).to_pylist():
        counted[file["partition.day"]] = counted.get(file["partition.day"], 0) + (file["num_records"] or 0)
    return counted


def _together(days: Iterable[date], events: Mapping[date, int], at_least: int) -> Iterable[set[date]]:
    own, held = set[date](), 0
    for day in days:
        own.add(day)
        held += events.get(day, 0)
        if held >= at_least:
            yield own
            own, held = set(), 0
    if own:
        yield own
