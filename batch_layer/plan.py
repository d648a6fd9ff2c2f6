"""What a rebuild will do, decided before anything is computed: the cut, the days of each view, the base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from batch_layer.touched import Master
from views.core.publication import Pointer
from views.core.view import View

if TYPE_CHECKING:
    from master_dataset.source import Source


@dataclass(frozen=True)
class Asked:
    """What the operator asked for; empty means everything. A `partial` question keeps the published cut."""

    views: Sequence[str] = ()
    first: date | None = None
    last: date | None = None
    stores: Sequence[str] = ()
    full: bool = False

    @property
    def is_partial(self) -> bool:
        """Whether only chosen views, days or stores are recomputed."""
        return bool(self.views or self.first or self.last or self.stores)


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
    """Plans against one state of the master dataset. `base_versions`: the table versions that made the base."""

    views: Sequence[View]
    masters: Mapping[str, Master]
    base: Pointer
    base_versions: Mapping[str, int]
    epoch: timedelta

    def plan(self, asked: Asked, cut: datetime, generation: int, definitions: Mapping[str, str]) -> Plan:
        """The plan for `asked` at this cut. A partial question is planned at the published cut."""
        chosen = [view for view in self.views if not asked.views or view.name in asked.views]
        work, alarms = [], []
        for view in chosen:
            days, stepped_back = self._days(view, asked, cut)
            if stepped_back:
                alarms.append(f"clock_stepped_back: {view.source.topic} on {', '.join(map(str, sorted(stepped_back)))}")
            work.append((view, _between(days | stepped_back, asked)))
        read = {topic: master.version for topic, master in self.masters.items()}
        versions = self.base_versions if asked.is_partial else read
        found = tuple(dict.fromkeys(alarms))
        return Plan(self.base, cut, work, self.masters, versions, generation, definitions, found)

    def _days(self, view: View, asked: Asked, cut: datetime) -> tuple[set[date], set[date]]:
        """Touched days and, apart, those touched by rows with a stamp before the base's cut (an alarm)."""
        master = self.masters[view.source.topic]
        known = self.base.definitions.get(view.name) == view.definition_hash and view.source.topic in self.base_versions
        if asked.full or asked.is_partial or not known:
            return master.days(asked.stores), set()
        since = self.base.cut - self.epoch
        base_version = self.base_versions[view.source.topic]
        return master.days_received(since, cut), master.days_stepped_back(base_version, since)


def _between(days: set[date], asked: Asked) -> set[date]:
    return {day for day in days if (asked.first or date.min) <= day <= (asked.last or date.max)}
