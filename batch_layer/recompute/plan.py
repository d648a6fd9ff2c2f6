"""What a rebuild will do, decided before anything is computed: the cut, the days of each view, the base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from batch_layer.recompute.touched import Master
from views.control.publication import Pointer
from views.control.recompute_request import RecomputeRequest
from views.core.view import View

if TYPE_CHECKING:
    from master_dataset.source import Source


Why = Literal["new events", "changed definition", "asked for"]
"""For what a view's days are recomputed. A view that was never published has a changed definition."""


@dataclass(frozen=True)
class Plan:
    """`work`: each view with the UTC days to recompute. `masters`: topic to the table version that is read.

    `master_versions`: topic to the version up to which the next rebuild may rely on this one. A part of views or days
    relies on no newer version than its base did: rows with an older stamp may have come since for other days.
    `generation` and `definitions` are what the publication will point at together with its cells.
    """

    base: Pointer
    cut: datetime
    work: Sequence[tuple[View, set[date]]]
    masters: Mapping[str, Master]
    master_versions: Mapping[str, int]
    generation: int
    definitions: Mapping[str, str]
    alarms: Sequence[str] = field(default=())
    whys: Mapping[str, Why] = field(default_factory=dict)
    """View to the reason for which its days are recomputed."""
    read_at: datetime | None = None
    """Before the tables were read: what the archive kept later may not be in them."""

    @property
    def days(self) -> set[date]:
        """Every day that is recomputed for some view."""
        return {day for _, days in self.work for day in days}

    @property
    def sources(self) -> "list[Source[Any]]":
        """The sources that are read, by topic."""
        read = {view.source.topic: view.source for view, days in self.work if days}
        return [read[topic] for topic in sorted(read)]


@dataclass(frozen=True)
class Planner:
    """Plans against one state of the master dataset. `base_versions`: the table versions that made the base.

    `visit_gap`: G, for how long a bundle may stay open.
    """

    views: Sequence[View]
    masters: Mapping[str, Master]
    base: Pointer
    base_versions: Mapping[str, int]
    epoch: timedelta
    visit_gap: timedelta = timedelta(0)

    def plan(self, asked: RecomputeRequest, cut: datetime, generation: int, definitions: Mapping[str, str]) -> Plan:
        """The plan for `asked` at this cut. A partial question is planned at the published cut."""
        chosen = [view for view in self.views if not asked.views or view.name in asked.views]
        all_days = cache(lambda topic: self.masters[topic].days(asked.stores))  # views of one source share its days
        touched = cache(lambda topic, gap: self._touched(topic, cut, gap))
        work, alarms = [], []
        whys: dict[str, Why] = {view.name: self._why(view, asked, definitions) for view in chosen}
        for view in chosen:
            topic = view.source.topic
            is_new = whys[view.name] == "new events"
            gap = self.visit_gap if view.counts_visits else timedelta(0)
            days, stepped_back = touched(topic, gap) if is_new else (all_days(topic), set())
            if stepped_back:
                alarms.append(f"clock_stepped_back: {topic} on {', '.join(map(str, sorted(stepped_back)))}")
            work.append((view, _between(view.days_reached(days | stepped_back), asked)))
        read = {topic: master.version for topic, master in self.masters.items()}
        versions = self.base_versions if asked.is_partial else read
        found = tuple(dict.fromkeys(alarms))
        return Plan(self.base, cut, work, self.masters, versions, generation, definitions, found, whys)

    def _why(self, view: View, asked: RecomputeRequest, definitions: Mapping[str, str]) -> Why:
        if asked.full or asked.is_partial:
            return "asked for"
        return "new events" if self._is_known(view, definitions) else "changed definition"

    def _is_known(self, view: View, definitions: Mapping[str, str]) -> bool:
        """Whether what is published of it was made with the same definition, from versions that are known."""
        same = view.is_defined_alike(self.base.definitions, definitions)
        return same and view.source.topic in self.base_versions

    def _touched(self, topic: str, cut: datetime, gap: timedelta) -> tuple[set[date], set[date]]:
        """Touched days and, apart, those touched by rows with a stamp before the base's cut (an alarm).

        `gap`: for how long before the cut an event may wait to be part of something.
        """
        master, since = self.masters[topic], self.base.cut - self.epoch
        return master.days_received(since - gap, cut), master.days_stepped_back(self.base_versions[topic], since)


def _between(days: set[date], asked: RecomputeRequest) -> set[date]:
    return {day for day in days if (asked.first or date.min) <= day <= (asked.last or date.max)}
