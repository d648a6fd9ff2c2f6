"""What a recompute will do, decided before anything is computed: the cut, the days of each view, the base."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import pyarrow.compute as pc
from deltalake import DeltaTable

from batch_layer.master import Master
from master_dataset.delta.dataset import naming_lost_files
from views.control.publication import Pointer
from views.control.recompute import RecomputeRequest
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


def kept(plan: Plan, run: str) -> dict[str, Any]:
    """The plan as JSON. `run`: under which name its cells are written."""
    base = asdict(plan.base) | {"definitions": dict(plan.base.definitions)}
    return {
        "run": run,
        "base": base,
        "cut": plan.cut,
        "generation": plan.generation,
        "work": {view.name: sorted(days) for view, days in plan.work},
        "whys": dict(plan.whys),
        "masters": {topic: [master.path, master.version] for topic, master in plan.masters.items()},
        "master_versions": dict(plan.master_versions),
        "definitions": dict(plan.definitions),
        "alarms": list(plan.alarms),
        "read_at": plan.read_at,
    }


def read_plan(told: Mapping[str, Any], views: Sequence[View]) -> Plan:
    """The inverse, among these views. KeyError if one of them is gone: definitions are compared before."""
    by_name = {view.name: view for view in views}
    base = told["base"] | {"cut": datetime.fromisoformat(told["base"]["cut"])}
    return Plan(
        base=Pointer(**base),
        cut=datetime.fromisoformat(told["cut"]),
        generation=told["generation"],
        work=[(by_name[name], set(map(date.fromisoformat, days))) for name, days in told["work"].items()],
        masters={topic: Master(path, version) for topic, (path, version) in told["masters"].items()},
        master_versions=told["master_versions"],
        definitions=told["definitions"],
        alarms=tuple(told["alarms"]),
        whys=told["whys"],
        read_at=datetime.fromisoformat(told["read_at"]) if told["read_at"] else None,
    )


LISTED_AT_MOST = 10_000
Places = Mapping[date, Mapping[str, bool]]
"""By day and store: whether events came that the base has not."""


def listed(plan: Plan) -> dict[str, Any]:
    """`partitions`, at most 10,000 of them, and `partitions_total`. Whole days are recomputed: also `same day`."""
    places = {topic: _places(master, plan, topic) for topic, master in plan.masters.items()}
    found = list(_partitions(plan, places))
    return {"partitions": found[:LISTED_AT_MOST], "partitions_total": len(found)}


def _partitions(plan: Plan, places: Mapping[str, Places]) -> Iterator[dict[str, str]]:
    for view, days in plan.work:
        why = plan.whys[view.name]
        for day in sorted(days):
            for store, is_new in sorted(_of_days(places[view.source.topic], view.days_read([day])).items()):
                own = ("new events" if is_new else "same day") if why == "new events" else why
                yield {"view": view.name, "day": day.isoformat(), "store": store, "why": own}


def _of_days(places: Places, days: Collection[date]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for day in days:
        for store, is_new in places.get(day, {}).items():
            found[store] = found.get(store, False) or is_new
    return found


def _places(master: Master, plan: Plan, topic: str) -> Places:
    days = {day for view, own in plan.work if view.source.topic == topic for day in view.days_read(own)}
    found: dict[date, dict[str, bool]] = {}
    if not days:
        return found
    for batch in _rows(master, days):
        is_new = pc.and_(pc.greater_equal(batch["received_at"], plan.base.cut), pc.less(batch["received_at"], plan.cut))
        for day, store, new in zip(
            batch["day"].to_pylist(), batch["store"].to_pylist(), is_new.to_pylist(), strict=True
        ):
            own = found.setdefault(day, {})
            own[store] = own.get(store, False) or new
    return found


def _rows(master: Master, days: Collection[date]) -> Iterator[Any]:
    table = DeltaTable(master.path, version=master.version)
    columns, of_days = ["day", "store", "received_at"], pc.field("day").isin(sorted(days))
    with naming_lost_files(table):
        yield from table.to_pyarrow_dataset().scanner(columns=columns, filter=of_days).to_batches()
