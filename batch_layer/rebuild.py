"""From events to corrected cells: what a rebuild computes, portion by portion.

    first deliveries of the portion's days -> cells of every view -> blocks under the run's name

Readers see none of it before a publication names the run, see `batch_layer.publish`.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from batch_layer.archived import report_unreadable_files
from batch_layer.computed import PortionEvents, are_few, computed_portion
from batch_layer.master import Master
from batch_layer.plan import Plan
from batch_layer.progress import Amount, RecordedProgress
from batch_layer.run import Run
from master_dataset.delta.tables import MasterTables
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.growth import Move
from master_dataset.storage import is_table
from master_dataset.visits.visit import VisitRules
from views.control.publication import ViewCounts
from views.control.recompute import PortionCounts
from views.core.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session
    from pyspark.sql import SparkSession

    from master_dataset.source import Source

EVENTS_TOGETHER = 2_000_000
"""Half a minute of work: large enough that the fixed cost of a portion does not matter."""


@dataclass(frozen=True)
class Portion:
    """Days of one source, and the views to compute of each. `events`: archived rows per day, repeats included."""

    number: int
    source: "Source[Any]"
    work: tuple[tuple[View, frozenset[date]], ...]
    events: Mapping[date, int]

    @property
    def days(self) -> set[date]:
        """Days of any of its views."""
        return {day for _, days in self.work for day in days}

    @property
    def days_read(self) -> set[date]:
        """The days whose events are read to compute them."""
        return {day for view, days in self.work for day in view.days_read(days)}

    def events_of(self, days: Iterable[date]) -> int:
        """How many rows these days have."""
        return sum(self.events.get(day, 0) for day in days)


def portions(plan: Plan, together: int = EVENTS_TOGETHER) -> list[Portion]:
    """The whole work, always cut in the same way: a plan names the versions of the tables. No day is in two."""
    found: list[Portion] = []
    for source in plan.sources:
        work = [(view, days) for view, days in plan.work if view.source.topic == source.topic and days]
        events = plan.masters[source.topic].events_by_day()
        for days in _together(sorted({day for _, own in work for day in own}), events, together):
            own = tuple((view, frozenset(of_view & days)) for view, of_view in work if of_view & days)
            found.append(Portion(len(found), source, own, {day: events.get(day, 0) for day in days}))
    return found


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


def is_small(plan: Plan, few: int, most_days: int) -> bool:
    """Whether it recomputes at most so many days, and every portion in this process, see `are_few`."""
    if len(plan.days) > most_days:
        return False
    return all(are_few(plan.masters[each.source.topic], each.days_read, few) for each in portions(plan))


def all_are_few(tables: MasterTables, topics: Iterable[str], few: int) -> bool:
    """Whether no source has more than `few` archived events, so that no rebuild needs Spark; never if that is 0.

    Raises:
        ObjectStoreUnavailableError: Nobody can say.
    """
    masters = [Master.newest(path) for path in map(tables.path, topics) if is_table(path)]
    return all(are_few(master, master.events_by_day(), few) for master in masters)


class Rebuild:
    """Computes the cells of one plan under the name of one run."""

    def __init__(  # noqa: PLR0913 - what a rebuild works with
        self,
        spark: "Callable[[], SparkSession]",
        connect: "Callable[[], Session]",
        tables: MasterTables,
        rules: VisitRules,
        moves: Sequence[Move] = (),
        *,
        few_events: int = 0,
        keeps_conflicts: bool = True,
    ) -> None:
        """`spark` is called only for portions that are not small; `connect` is also called in Spark's workers.

        `rules`: when sightings make a visit. `moves`: when stores moved to partitions that were added.
        `few_events`: portions that read at most so many are computed in this process.
        `keeps_conflicts`: a preview only counts them, beside a rebuild that may be keeping the same ones.
        """
        self._spark, self._connect, self._tables = spark, connect, tables
        self._rules, self._moves, self._few, self._keeps_conflicts = rules, moves, few_events, keeps_conflicts

    def compute(
        self, plan: Plan, run: str, done: Collection[int], progress: RecordedProgress
    ) -> Iterator[tuple[int, PortionCounts]]:
        """Compute every portion that is not among those `done`; yield each when all its cells are written."""
        every = portions(plan) if plan.days else []
        total, reached = _amount(every), _amount(each for each in every if each.number in done)
        writer = Run(self._connect, run)
        for portion in every:
            if portion.number not in done:
                with report_unreadable_files(self._tables):
                    counted = self._portion(plan, portion, writer, _PortionProgress(reached, total, progress))
                yield portion.number, counted
                reached = reached.plus(_amount([portion]))
        progress.work(total, total, "all views")

    def _portion(self, plan: Plan, portion: Portion, run: Run, part: "_PortionProgress") -> PortionCounts:
        part.begun(portion.work[0][0].name)
        master = plan.masters[portion.source.topic]
        views = [view for view, _ in portion.work]
        own = (portion.source, master, portion.days_read, portion.days)
        of = PortionEvents(*own, plan.cut, self._rules, self._moves, views)
        computed = computed_portion(of, self._spark, self._few)
        repeated = computed.repeats
        if self._keeps_conflicts and repeated.conflicts:
            computed.keep_conflicts(self._tables)
        counts = {}
        for view, days in portion.work:
            part.begun(view.name)
            began = time.monotonic()
            blocks = run.write(view, set(days), computed.rows(view, days))
            failpoint(Failpoint.REBUILD_VIEW)
            read, seconds = portion.events_of(days), round(time.monotonic() - began, 2)
            counts[view.name] = ViewCounts(len(days), blocks, read, seconds)
            part.done(Amount(len(days), read), view.name)
        computed.release()
        blocks_of_all = sum(each.blocks for each in counts.values())
        return PortionCounts(**repeated._asdict(), blocks=blocks_of_all, views=counts, run=run.name)


class _PortionProgress:
    """Progress within a portion."""

    def __init__(self, reached: Amount, total: Amount, progress: RecordedProgress) -> None:
        self._reached, self._total, self._progress = reached, total, progress

    def begun(self, what: str) -> None:
        self._progress.work(self._reached, self._total, what)

    def done(self, amount: Amount, what: str) -> None:
        self._reached = self._reached.plus(amount)
        self._progress.work(self._reached, self._total, what)


def _amount(some: "Iterator[Portion] | list[Portion]") -> Amount:
    of = [(len(days), portion.events_of(days)) for portion in some for _, days in portion.work]
    return Amount(sum(days for days, _ in of), sum(events for _, events in of))
