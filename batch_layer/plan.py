"""What a recompute will do, decided before anything is computed: the cut, the days of each view, the base.

RecomputePlanner   reaches a cut with the fence, checks what may be published at it, and calls
Planner            which plans against one state of the master dataset, and returns
Plan               what is to be done: kept as a `StoredPlan`, previewed as `PlannedPartition`s
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from batch_layer.context import BatchContext
from batch_layer.master import Master
from batch_layer.progress import Steps
from batch_layer.publish import generation_to_publish, refuse_gap, refuse_partial
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.delta.dataset import arrow_dataset, report_lost_files, scan
from master_dataset.errors import BrokerUnavailableError, NothingArchivedError
from master_dataset.storage import open_table
from views import registered_views, view_named
from views.control.generation import Generations
from views.control.publication import Pointer, PointerRow
from views.control.recompute import PlannedPartition, RecomputeRequest, StoredPlan, Why
from views.core.cut import ceil_to, floor_to
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from master_dataset.source import Source

PREVIEWED_AT_MOST = 10_000
"""Partitions that a preview lists."""


@dataclass(frozen=True)
class Plan:
    """`work`: each view with the UTC days to recompute. `masters`: topic to the table version that is read.

    `master_versions`: topic to the version up to which the next rebuild may rely on this one. A partial recompute
        relies on no newer version than its base did, because rows with an older timestamp may have arrived since for
        other days.
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
    """View to the reason why its days are recomputed."""
    read_at: datetime | None = None
    """Before the tables were read: events archived later may not be in them."""

    @property
    def days(self) -> set[date]:
        """Every day that is recomputed for some view."""
        return {day for _, days in self.work for day in days}

    @property
    def sources(self) -> "list[Source[Any]]":
        """The sources that are read, by topic."""
        read = {view.source.topic: view.source for view, days in self.work if days}
        return [read[topic] for topic in sorted(read)]

    @property
    def is_published(self) -> bool:
        """Whether nothing would change: the published cells already cover the plan."""
        return bool(self.base.publication) and not self.days and self.cut == self.base.cut

    def stored(self, number: int, run: str) -> StoredPlan:
        """The plan in its stored form; `run` is the name under which its cells are written."""
        return StoredPlan(
            number=number,
            run=run,
            base=replace(self.base, definitions=dict(self.base.definitions)),
            cut=self.cut,
            generation=self.generation,
            work={view.name: sorted(days) for view, days in self.work},
            whys=dict(self.whys),
            masters={topic: (master.path, master.version) for topic, master in self.masters.items()},
            master_versions=dict(self.master_versions),
            definitions=dict(self.definitions),
            alarms=list(self.alarms),
            read_at=self.read_at,
        )

    @classmethod
    def restored(cls, stored: StoredPlan, views: Sequence[View]) -> "Plan":
        """The inverse of `stored`. KeyError if a view is missing; definitions are compared first."""
        by_name = {view.name: view for view in views}
        return cls(
            base=stored.base,
            cut=stored.cut,
            generation=stored.generation,
            work=[(by_name[name], set(days)) for name, days in stored.work.items()],
            masters={topic: Master(path, version) for topic, (path, version) in stored.masters.items()},
            master_versions=stored.master_versions,
            definitions=stored.definitions,
            alarms=tuple(stored.alarms),
            whys=stored.whys,
            read_at=stored.read_at,
        )


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

    def plan(self, request: RecomputeRequest, cut: datetime, generation: int, definitions: Mapping[str, str]) -> Plan:
        """The plan for a request at this cut. A partial request is planned at the published cut."""
        chosen = [view for view in self.views if not request.views or view.name in request.views]
        all_days = cache(lambda topic: self.masters[topic].days(request.stores))  # views of one source share its days
        touched = cache(lambda topic, gap: self._touched(topic, cut, gap))
        work, alarms = [], []
        whys: dict[str, Why] = {view.name: self._why(view, request, definitions) for view in chosen}
        for view in chosen:
            topic = view.source.topic
            is_new = whys[view.name] == "new events"
            gap = self.visit_gap if view.counts_visits else timedelta(0)
            days, stepped_back = touched(topic, gap) if is_new else (all_days(topic), set())
            if stepped_back:
                alarms.append(f"clock_stepped_back: {topic} on {', '.join(map(str, sorted(stepped_back)))}")
            work.append((view, _between(view.days_reached(days | stepped_back), request)))
        read = {topic: master.version for topic, master in self.masters.items()}
        versions = self.base_versions if request.is_partial else read
        found = tuple(dict.fromkeys(alarms))
        return Plan(self.base, cut, work, self.masters, versions, generation, definitions, found, whys)

    def _why(self, view: View, request: RecomputeRequest, definitions: Mapping[str, str]) -> Why:
        if request.full or request.is_partial:
            return "asked for"
        return "new events" if self._is_known(view, definitions) else "changed definition"

    def _is_known(self, view: View, definitions: Mapping[str, str]) -> bool:
        """Whether what is published of it was made with the same definition, from versions that are known."""
        same = view.is_defined_alike(self.base.definitions, definitions)
        return same and view.source.topic in self.base_versions

    def _touched(self, topic: str, cut: datetime, gap: timedelta) -> tuple[set[date], set[date]]:
        """Touched days, and separately those touched by rows with a timestamp before the base's cut (an alarm).

        `gap`: for how long before the cut an event may wait to be part of something.
        """
        master, since = self.masters[topic], self.base.cut - self.epoch
        return master.days_received(since - gap, cut), master.days_stepped_back(self.base_versions[topic], since)


def _between(days: set[date], request: RecomputeRequest) -> set[date]:
    return {day for day in days if (request.first or date.min) <= day <= (request.last or date.max)}


@dataclass(frozen=True)
class RecomputePlanner:
    """Reaches a cut and plans a request at it. Writes nothing but the markers of the cut."""

    context: BatchContext

    def plan(self, request: RecomputeRequest, steps: Steps) -> Plan:
        """Reach a cut and plan the request at it.

        Without Kafka only what the published cut covers can be recomputed.

        Raises:
            BrokerUnavailableError: Kafka does not answer, and nothing can be recomputed at the published cut.
            NothingArchivedError: A partial request names nothing that is archived.
        """
        for name in request.views:
            view_named(name)
        base, versions = self._base()
        if request.is_partial:
            refuse_partial(base, self.context.definitions)
        generation = generation_to_publish(Generations(self._session), base, self.context.definitions)
        if request.is_partial:
            plan = self._planned(request, base, versions, generation, base.cut)
            if not plan.days:
                message = "no events are archived for the requested views, days and stores"
                raise NothingArchivedError(message, do="galatea rebuild, without days")
            return plan
        try:
            cut = self._reach(base, steps, wait=request.wait)
        except BrokerUnavailableError as error:
            if not base.publication or request.wait or base.cut != floor_to(base.cut, self._epoch):
                raise
            plan = self._planned(request, base, versions, generation, base.cut)
            if not plan.days:
                raise
            steps.step(0, 0, f"{error.message}; using the published cut, {base.cut:%H:%M:%S} UTC")
            return plan
        return self._planned(request, base, versions, generation, cut)

    def expected(self) -> Plan:
        """What a rebuild would plan now, of what is archived by now. It reaches no cut, so it is only an estimate.

        CutNotReachedError, DefinitionNotCoveredError: nothing could be published.
        """
        base, versions = self._base()
        generation = generation_to_publish(Generations(self._session), base, self.context.definitions)
        cut = max(self.context.fence.newest_cut(), ceil_to(base.cut, self._epoch))
        return self._planned(RecomputeRequest(), base, versions, generation, cut)

    def _base(self) -> tuple[Pointer, Mapping[str, int]]:
        """What is published, and the table versions on which the next rebuild may rely."""
        pointer = PointerRow(self._session)
        base = pointer.read()
        published = pointer.publication(base.publication)
        return base, published.master_versions if published else {}

    @property
    def _session(self) -> "Session":
        return self.context.session

    @property
    def _epoch(self) -> timedelta:
        return self.context.fence.epoch

    def _reach(self, base: Pointer, steps: Steps, *, wait: bool) -> datetime:
        fence = self.context.fence
        published = ceil_to(base.cut, self._epoch)  # epochs may have been shorter
        cut = max(fence.next_cut() if wait else fence.newest_cut(), published)  # clocks may step back
        steps.step(0, 0, f"cut at {cut:%H:%M:%S} UTC")
        fence.wait(fence.mark(cut), ArchivePositions(self._session).read, "archive", self.context.cut_timeout)
        return cut

    def _planned(
        self, request: RecomputeRequest, base: Pointer, versions: Mapping[str, int], generation: int, cut: datetime
    ) -> Plan:
        refuse_gap(Generations(self._session), generation, cut)
        read_at = datetime.now(UTC)
        topics = {view.source.topic for view in registered_views()}
        masters = {topic: Master.newest(self.context.tables.path(topic)) for topic in sorted(topics)}
        gap = timedelta(milliseconds=self.context.visits.gap)
        planner = Planner(registered_views(), masters, base, versions, self._epoch, gap)
        return replace(planner.plan(request, cut, generation, self.context.definitions), read_at=read_at)


def previewed_partitions(plan: Plan) -> list[PlannedPartition]:
    """Every (view, day, store) that the plan recomputes. Whole days are recomputed: also stores of the `same day`."""
    stores = {topic: _stores_by_day(master, plan, topic) for topic, master in plan.masters.items()}
    return [
        PlannedPartition(view.name, day.isoformat(), store, _why(plan.whys[view.name], is_new=is_new))
        for view, days in plan.work
        for day in sorted(days)
        for store, is_new in sorted(_of_days(stores[view.source.topic], view.days_read([day])).items())
    ]


StoresByDay = Mapping[date, Mapping[str, bool]]
"""Day to store to whether events came that the base does not have."""


def _why(why: Why, *, is_new: bool) -> str:
    return ("new events" if is_new else "same day") if why == "new events" else why


def _of_days(stores: StoresByDay, days: Collection[date]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for day in days:
        for store, is_new in stores.get(day, {}).items():
            found[store] = found.get(store, False) or is_new
    return found


def _stores_by_day(master: Master, plan: Plan, topic: str) -> StoresByDay:
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
    table = open_table(master.path, master.version)
    columns, of_days = ["day", "store", "received_at"], pc.field("day").isin(sorted(days))
    with report_lost_files(table):
        yield from scan(arrow_dataset(table, days), columns, of_days).to_batches()
