"""Totals of whole days over many stores from day cells, without the cells of windows.

What a run keeps for a store and a part of a UTC day is used where all windows of the part lie in one point of the
answer, or in none. A store for which that does not hold is left to `fetch` and `aggregate`, with the same result: sums,
minima, maxima and unions do not depend on the order in which cells are merged. Speed rows are added as ever.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from master_dataset.errors import RangeTooLongError
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.off_loop import CELLS_PER_DAY, ROWS_PER_CELL, off_loop
from serving_layer.products.dimensions import is_product_dimension
from serving_layer.query.aggregate import CURRENCY, DEVICE_DAYS, NO_SOURCE, StateSums, empty_sums
from serving_layer.query.day_columns import (
    Booleans,
    Integers,
    MergedStates,
    NeedsWindowsError,
    NumberedSeries,
    occurring,
)
from serving_layer.query.day_event_flags import days_of_schedules, event_flags
from serving_layer.query.day_rows import DayRows, FreshRow
from serving_layer.query.groups import GroupKey, GroupStates, MergedPoint, Totals, Values
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.query.sensor_coverage import sensor_sources
from serving_layer.store.cells import MergedCells, WaitingEvents
from serving_layer.store.day_cells import NamedDays, Texts, ViewDays
from serving_layer.store.snapshot import ReadSnapshot
from serving_layer.timeline import PointLabel, QueryRange, zone_named
from views.core.cells import Addition
from views.core.cut import is_fresh, seconds
from views.core.local_time import STEP, BusinessDays, Span, round_down, round_up

MOST_MERGED = 6_000_000
"""How many states, over all groups, series and points, may be merged by columns: about 500 MB."""
MOST_APART = 1_000_000
"""How many states of slices wait until they are merged with each other."""
DAY_GRAINS = frozenset(("day", "week", "month", "year", "total"))


def takes_day_cells(query: ResolvedQuery) -> bool:
    """Whether day cells may answer a query: it adds up whole days, and nothing in it depends on single windows."""
    metric = query.metric
    if query.grain not in DAY_GRAINS or query.compare is not None or query.left_out is not None:
        return False
    if query.leaves_windows_out or query.needs_whole_days or metric.facts:
        return False
    if sensor_sources(query.views) or "low_coverage" in metric.flags:
        return False
    return all(_takes_columns(sums) for sums in empty_sums(query))


def _takes_columns(sums: StateSums) -> bool:
    return not sums.selection.needs_master and not any(map(is_product_dimension, sums.split))


@dataclass
class _Found:
    """What the stored rows of a query say of its stores, by id.

    Attributes:
        apart: the stores that have windows in several points where the run kept one state.
        with_cells: by the name of the view those that have any row that counts.
        currencies: of the amounts of each.
    """

    apart: set[str] = field(default_factory=set)
    with_cells: dict[str, set[str]] = field(default_factory=dict)
    currencies: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Located:
    """Where rows belong.

    Attributes:
        store: per row the place of its store; -1 for others.
        label: per row the number of its label; -1 if no window of it counts.
        is_apart: per row whether only some of its windows are in one point.
    """

    store: Integers
    label: Integers
    is_apart: Booleans

    @cached_property
    def counted(self) -> Integers | slice:
        """The rows that count; a slice of all of them if all do."""
        counts = self.label >= 0
        return slice(None) if counts.all() else np.flatnonzero(counts)


@dataclass
class DayTotals:
    """The totals of one query from day cells. `read` finds which stores they can answer for, `merge` adds them up.

    Day cells are read in slices, so that memory does not grow with their number: once by `read`, and where they are too
    many to be kept until then, again by `merge`.

    Attributes:
        query: what is asked.
        days: the day cells of every view that it reads.
        stores: the stores that are answered.
        groups: by the id of a store the values of its groups.
        found: what the rows say of the stores.
    """

    query: ResolvedQuery
    days: Sequence[NamedDays]
    stores: list[StoreQuery]
    groups: Mapping[str, Values] = field(default_factory=dict)
    found: _Found = field(default_factory=_Found)
    _known: dict[ViewDays, "_Located"] = field(default_factory=dict)

    @classmethod
    async def read(cls, query: ResolvedQuery, snapshot: ReadSnapshot, cells: MergedCells) -> "DayTotals":
        """Read the day cells of a query that `takes_day_cells`.

        Raises:
            DefinitionNotPublishedError, CellMissingError, CassandraUnavailableError: see `fetch`.
        """
        start = min((of.timeline.start for of in query.stores), default=0)
        end = max((of.timeline.end for of in query.stores), default=0)
        days = []
        for view in query.views if query.stores else ():
            snapshot.refuse_unpublished(view)
            days.append(await cells.days.named(snapshot.pointer.manifest, view, start, end))
        groups = {of.store.id: found for of in query.stores if (found := _groups_of(query, of)) is not None}
        without = set[str]().union(*(each.without for each in days))
        answerable = [of for of in query.stores if of.store.id in groups and of.store.id not in without]
        totals = cls(query, days, answerable, groups)
        for named in days if answerable else ():
            async for each in cells.days.slices(named):
                await off_loop(totals.points + each.rows // ROWS_PER_CELL, partial(totals._inspect, each))
        return totals.only({of.store.id for of in answerable} - totals.found.apart)

    def only(self, stores: Collection[str]) -> "DayTotals":
        """Answer for these stores alone."""
        if len(stores) == len(self.stores):
            return self
        chosen = [of for of in self.stores if of.store.id in stores]
        return DayTotals(self.query, self.days, chosen, self.groups, self.found)

    async def merge(self, snapshot: ReadSnapshot, cells: MergedCells) -> "MergedDays":
        """Read the speed rows of the stores, and merge the states of both layers.

        Raises:
            NeedsWindowsError: only whoever merges cells one by one can answer.
            RangeTooLongError: they have more than `MOST_MERGED` states.
            CellMissingError, CassandraUnavailableError: see `fetch`.
        """
        ids = [of.store.id for of in self.stores]
        spans = {of.store.id: [Span(of.timeline.start, of.timeline.end)] for of in self.stores}
        fresh = {}
        for days in self.days:
            speed = await cells.speed.rows_of(snapshot, days.view, ids)
            number = sum(map(len, speed.values()))
            fresh[days.view.name] = await off_loop(self.points + number, partial(self._fresh, speed, snapshot))
        waiting = await cells.waiting(snapshot, self.query.views, spans)
        merging = await off_loop(len(ids), lambda: _Merging(self, fresh))
        for named in self.days:
            more = fresh[named.view.name]
            async for each in cells.days.slices(named):
                await off_loop(merging.cost + each.rows // ROWS_PER_CELL + len(more), partial(merging.add, each, more))
                more = []
        known_until = seconds(snapshot.as_of_at)
        return await off_loop(
            merging.cost + len(ids), lambda: merging.merged(waiting, known_until, is_loading=snapshot.is_loading)
        )

    @cached_property
    def ranges(self) -> list[QueryRange]:
        """The different ranges of the stores."""
        return list(dict.fromkeys(of.range for of in self.stores))

    @property
    def points(self) -> int:
        """How many points the different ranges have. Each takes about as long as a cell, even where it has none."""
        return sum(len(each.timeline.spans) for each in self.ranges)

    @cached_property
    def labels(self) -> list[int]:
        """The numbers of all labels, in order."""
        return sorted({label.number for each in self.ranges for label in each.labels})

    @cached_property
    def _number(self) -> Mapping[int, int]:
        """The place of each label among `labels`, by its number."""
        return {label: place for place, label in enumerate(self.labels)}

    @cached_property
    def place(self) -> Mapping[str, int]:
        """The place of each store by its id."""
        return {of.store.id: place for place, of in enumerate(self.stores)}

    @cached_property
    def places_of_ranges(self) -> Integers:
        """Per store the place of its range among `ranges`."""
        number = {each: place for place, each in enumerate(self.ranges)}
        return np.array([number[of.range] for of in self.stores], np.int64)

    @cached_property
    def of_money(self) -> frozenset[str]:
        """The names of views whose amounts have to be of one currency in each store."""
        if CURRENCY in self.query.by or not self.query.metric.is_of_money:
            return frozenset()
        return frozenset(each.view.name for each in empty_sums(self.query) if CURRENCY in each.view.dimensions)

    def _located(self, days: ViewDays) -> "_Located":
        """Where the rows belong."""
        if not any(days in (named.kept or ()) for named in self.days):
            return self._locate(days)
        if days not in self._known:
            self._known[days] = self._locate(days)
        return self._known[days]

    def _locate(self, days: ViewDays) -> "_Located":
        texts = days.stores.vocabulary.texts[:]
        places = np.array([self.place.get(store or "", -1) for store in texts], np.int64)
        store = places[days.stores.numbers]
        label, is_apart = np.full(len(store), -1), np.zeros(len(store), bool)
        ranges, all_starts, all_ends = np.append(self.places_of_ranges, -1)[store], days.starts, days.ends
        for place, (starts, ends, numbers) in enumerate(self._spans):
            rows = np.flatnonzero(ranges == place)
            start, end = all_starts[rows], all_ends[rows]
            at = np.clip(np.searchsorted(starts, start, side="right") - 1, 0, None)
            is_outside = (end <= starts[0]) | (start >= ends[-1])
            is_inside = ~is_outside & (start >= starts[at]) & (end <= ends[at])
            label[rows[is_inside]] = numbers[at[is_inside]]
            is_apart[rows] = ~is_inside & ~is_outside
        return _Located(store, label, is_apart)

    @cached_property
    def _spans(self) -> list[tuple[Integers, Integers, Integers]]:
        """Per range where its spans begin and end, and the numbers of their labels."""
        found = []
        for each in self.ranges:
            starts, ends = (np.array(bounds, np.int64) for bounds in zip(*each.timeline.spans, strict=True))
            numbers = [self._number[each.labels[point].number] for point in each.timeline.points]
            found.append((starts, ends, np.array(numbers, np.int64)))
        return found

    def _inspect(self, days: ViewDays) -> None:
        """Note what some rows say of the stores."""
        located = self._located(days)
        ids = [of.store.id for of in self.stores]
        self.found.apart.update(ids[place] for place in np.unique(located.store[located.is_apart]).tolist())
        counted = located.counted
        there, _ = occurring(located.store[counted], len(ids))
        self.found.with_cells.setdefault(days.view.name, set()).update(ids[place] for place in there.tolist())
        if days.view.name in self.of_money:
            vocabulary, numbers = days.dimension(CURRENCY)
            size = len(vocabulary.texts)
            pairs, _ = occurring(located.store[counted] * size + numbers[counted], len(ids) * size)
            for place, value in (divmod(pair, size) for pair in pairs.tolist()):
                self.found.currencies.setdefault(ids[place], set()).add(vocabulary.texts[value] or "")

    def _fresh(self, speed: Mapping[str, Iterable[Addition]], snapshot: ReadSnapshot) -> list[FreshRow]:
        """The speed rows that count."""
        fresh = []
        for store, rows in speed.items():
            of = self.stores[self.place[store]]
            starts, line, own = [span.start for span in of.timeline.spans], of.timeline, of.range.labels
            for row in rows:
                if is_fresh(row.epoch, snapshot.pointer.cut) and line.start <= row.key.window < line.end:
                    point = line.points[bisect_right(starts, row.key.window) - 1]
                    fresh.append(FreshRow(self.place[store], self._number[own[point].number], row))
        return fresh

    def rows(self, days: ViewDays, fresh: Sequence[FreshRow]) -> "DayRows":
        """The rows of `days` that count, and speed rows."""
        located = self._located(days)
        store, labels = located.store[located.counted], located.label[located.counted]
        if fresh:
            store = np.concatenate([store, np.array([row.store for row in fresh], np.int64)])
            labels = np.concatenate([labels, np.array([row.label for row in fresh], np.int64)])
        return DayRows(days, located.counted, fresh, store, labels)


class _Merging:
    """The states of a query while its rows are merged, slice by slice."""

    def __init__(self, totals: DayTotals, speed: Mapping[str, Sequence[FreshRow]]) -> None:
        """`speed`: the speed rows by the name of their view.

        Raises:
            NeedsWindowsError: a store has amounts of several currencies, and the query would add them.
        """
        query = totals.query
        self._totals, self._sums = totals, empty_sums(query)
        self._is_known = _known(totals, speed)
        key_of = []
        for of, own in zip(totals.stores, _currencies(totals, speed), strict=True):
            code = own if query.metric.is_of_money and CURRENCY not in query.by else None
            store = None if query.merges_stores else of.store.id
            key_of.append(GroupKey(store, totals.groups[of.store.id], code))
        self._keys = sorted(set(key_of), key=lambda key: key.order)
        number = {key: place for place, key in enumerate(self._keys)}
        self._group = np.array([number[key] for key in key_of], np.int64)
        self._parts: list[list[MergedStates]] = [[] for _ in self._sums]
        self._flags = Counter[str]()
        places = set(zip(self._group.tolist(), totals.places_of_ranges.tolist(), strict=True))
        points = sum(len(totals.ranges[place].labels) for _, place in places)
        self._fixed_cost = totals.points + points + CELLS_PER_DAY * days_of_schedules(totals.stores)

    @property
    def cost(self) -> int:
        """How many cells take as long as points, opening hours, and merging the states that wait with each other."""
        waiting = (parts for parts in self._parts if len(parts) > 1)
        return self._fixed_cost + sum(len(each.group) for parts in waiting for each in parts) // ROWS_PER_CELL

    def add(self, days: ViewDays, fresh: Sequence[FreshRow]) -> None:
        """Merge some stored rows of a view, and speed rows.

        Raises:
            NeedsWindowsError, RangeTooLongError: see `DayTotals.merge`.
        """
        rows = self._totals.rows(days, fresh)
        group = np.where(self._is_known, self._group, -1)
        for sums, parts in zip(self._sums, self._parts, strict=True):
            if sums.view.name == days.view.name:
                parts.append(_merged(self._totals, sums, rows, group))
                if sum(len(each.group) for each in parts[1:]) > MOST_APART:
                    parts[:] = [MergedStates.together(parts)]
        _refuse_more(sum(len(parts[0].group) for parts in self._parts if parts))
        self._flags += event_flags(self._totals.stores, rows)

    def merged(self, waiting: Mapping[str, WaitingEvents], known_until: int, *, is_loading: bool) -> "MergedDays":
        """The totals. `waiting`: per store. `known_until`: the instant of the snapshot. `is_loading`: see `Period`."""
        groups = [
            _group(self._totals, key, self._group == place, self._is_known, known_until)
            for place, key in enumerate(self._keys)
        ]
        for group in groups:
            group.now.is_loading = is_loading
        for place, of in enumerate(self._totals.stores):
            if (left := waiting[of.store.id]).number:
                points = groups[int(self._group[place])].points
                for label, span in zip(of.range.labels, of.range.timeline.bounds, strict=True):
                    points[label.number].is_waited_for |= left.may_change(span)
        states = list(map(MergedStates.together, self._parts))
        _refuse_more(sum(len(each.group) for each in states))
        split = [place for place, each in enumerate(states) if each.sums.split == self._totals.query.by]
        if len(split) > 1:
            series, numbers = NumberedSeries.together([states[place].series for place in split])
            for place, own in zip(split, numbers, strict=True):
                states[place] = replace(states[place], series=series, place=own[states[place].place])
        total = sum(each.number for each in waiting.values())
        return MergedDays(self._totals, self._keys, states, groups, total, self._flags)


@dataclass(frozen=True)
class MergedDays:
    """The totals of a query over the stores of `DayTotals`.

    Attributes:
        totals: what was asked, and of which stores.
        keys: the groups of stores, by number.
        states: one per view and set of terms, as `empty_sums` has them.
        groups: the groups without their states, by number.
        waiting: how many events only the next publication will count.
        event_flags: how many events carry each flag.
    """

    totals: DayTotals
    keys: Sequence[GroupKey]
    states: Sequence[MergedStates]
    groups: Sequence[GroupStates]
    waiting: int
    event_flags: Counter[str]

    @property
    def points(self) -> int:
        """How many there are over all groups, and over all series of theirs."""
        return sum(len(each.points) for each in self.groups) + sum(len(each.group) for each in self.states)

    def states_of(self, number: int) -> list[MergedStates]:
        """The states of one group."""
        return [each.where(each.group == number) for each in self.states]

    def add_to(self, into: Totals) -> None:
        """Put the groups with all their states into totals that have no store yet.

        Raises:
            RangeTooLongError: they have too many points; no state is made then.
        """
        self._adopt_in(into, self.points)
        for number, group in enumerate(self.groups):
            for sums, states in zip(group.now.sums, self.states_of(number), strict=True):
                sums.points = states.points()

    def count_in(self, into: Totals) -> None:
        """Put the groups into totals as they are, and what was counted beside them, for the top of their series.

        Raises:
            RangeTooLongError: they have too many points, whatever their series.
        """
        self._adopt_in(into, sum(len(each.points) for each in self.groups))

    def _adopt_in(self, into: Totals, points: int) -> None:
        zones = {of.zone for of in self.totals.stores}
        into.adopt(self.groups, points, waiting=self.waiting, zones=zones, event_flags=self.event_flags)


def _refuse_more(states: int) -> None:
    if states > MOST_MERGED:
        message = f"The totals are made of more than {MOST_MERGED:,} sums."
        do = "Use a coarser `grain`, a shorter range, or fewer dimensions in `by`."
        raise RangeTooLongError(message, do=do)


def _merged(totals: DayTotals, sums: StateSums, rows: DayRows, group: Integers) -> MergedStates:
    """`group`: the number of the group per store; -1 for stores of which nothing is known."""
    of_row = group[rows.store] if len(group) else rows.store
    counts = of_row >= 0
    for name, chosen in sums.where:
        vocabulary, numbers = rows.dimension(name)
        is_chosen = np.zeros(len(vocabulary.texts), bool)
        is_chosen[vocabulary.known(chosen, len(is_chosen))] = True
        counts &= is_chosen[numbers]
    dimensions, columns = [rows.dimension(name) for name in sums.own_split], [rows.state(name) for name in sums.columns]
    label, provisional = rows.label, rows.provisional
    if not counts.all():
        used = np.flatnonzero(counts)
        dimensions = [Texts(of, numbers[used]) for of, numbers in dimensions]
        columns = [each.where(used) for each in columns]
        of_row, label, provisional = of_row[used], label[used], provisional[used]
    series, number = NumberedSeries.of_rows(dimensions, len(of_row))
    key = of_row, number, label
    return MergedStates.of(sums, series, totals.labels, key=key, provisional=provisional, columns=columns)


def _groups_of(query: ResolvedQuery, of: StoreQuery) -> Values | None:
    """The values of the groups that a store is in for the whole range; None if they change within it."""
    store, names = of.store, query.groups
    if not names or query.attributes == "current":
        return tuple((name, store.current_group(name)) for name in names)
    days = BusinessDays.of(store, zone_named(store.timezone))
    line = of.timeline
    changes = (days.start(version.valid_from) for version in store.groups if version.valid_from)
    starts = [line.start, *(at for at in changes if line.start < at < line.end)]
    found = {tuple((name, store.group(name, days.day_of(at))) for name in names) for at in starts}
    return found.pop() if len(found) == 1 else None


def _currencies(totals: DayTotals, speed: Mapping[str, Sequence[FreshRow]]) -> list[str]:
    """The currency of the amounts of each store; its own if it has none.

    Raises:
        NeedsWindowsError: a store has amounts of several, and the query would add them.
    """
    own = [of.store.currency.code for of in totals.stores]
    found = [set(totals.found.currencies.get(of.store.id, ())) for of in totals.stores]
    for named in totals.days:
        if named.view.name in totals.of_money:
            place = list(named.view.dimensions).index(CURRENCY)
            for row in speed[named.view.name]:
                found[row.store].add(row.addition.key.dimensions[place] or "")
    if any(len(codes) > 1 for codes in found):
        raise NeedsWindowsError
    return [next(iter(codes), code) for codes, code in zip(found, own, strict=True)]


def _known(totals: DayTotals, speed: Mapping[str, Sequence[FreshRow]]) -> Booleans:
    """Per store whether it has the source of every view: a till always, a registered sensor, or any cell."""
    found = np.ones(len(totals.stores), bool)
    for named in totals.days:
        topic, with_cells = named.view.source.topic, totals.found.with_cells.get(named.view.name, set())
        has_source = [
            of.store.id in with_cells or topic in {POS_TRANSACTIONS.topic, *(each.source for each in of.store.sensors)}
            for of in totals.stores
        ]
        has_rows = np.array(has_source, bool)
        has_rows[[row.store for row in speed[named.view.name]]] = True
        found &= has_rows
    return found


def _group(totals: DayTotals, key: GroupKey, is_in: Booleans, is_known: Booleans, known_until: int) -> GroupStates:
    """A group of stores without its states. `is_in`, `is_known`: per store."""
    group, ranges, missing = GroupStates.empty(totals.query, key), Counter[QueryRange](), Counter[QueryRange]()
    for place in np.flatnonzero(is_in).tolist():
        of = totals.stores[place]
        group.zones.add(of.zone)
        ranges[of.range] += 1
        missing[of.range] += not is_known[place]
        (group.counted if is_known[place] else group.missing).add(of.store.id)
    if group.missing:
        group.reasons.add(NO_SOURCE)
    group.now.begun, group.now.over = round_up(known_until), round_down(known_until)
    knows_days = DEVICE_DAYS in totals.query.metric.flags
    for each, stores in ranges.items():
        for label, span, has_several_days in _points(each, knows_days=knows_days):
            point = MergedPoint(label, span, has_several_days, stores=stores, missing=missing[each])
            there = group.points.setdefault(label.number, point)
            if there is not point:
                there.merge(point)
    return group


@lru_cache(maxsize=64)
def _points(of: QueryRange, *, knows_days: bool) -> list[tuple[PointLabel, Span, bool]]:
    """The label and windows of each point, and if it matters whether it has windows of several business days."""
    bounds, days = of.timeline.bounds, of.days
    several = (knows_days and days.day_of(bound.start) != days.day_of(bound.end - STEP) for bound in bounds)
    return list(zip(of.labels, bounds, several, strict=True))
