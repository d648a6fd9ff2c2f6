"""Totals of whole days over many stores from day cells, without the cells of windows.

What a run keeps for a store and a part of a UTC day is used where all windows of the part lie in one point of the
answer, or in none. A store for which that does not hold is left to `fetch` and `aggregate`, with the same result: sums,
minima, maxima and unions do not depend on the order in which cells are merged. Speed rows are added as ever.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from typing import overload

import numpy as np
import numpy.typing as npt

from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.off_loop import ROWS_PER_CELL, off_loop
from serving_layer.products.dimensions import is_product_dimension
from serving_layer.query.aggregate import CURRENCY, NO_SOURCE, OUTSIDE_OPENING_HOURS, Group, StateSums, empty_sums
from serving_layer.query.day_columns import (
    Booleans,
    Integers,
    MergedStates,
    NeedsWindowsError,
    StateColumn,
    occurring,
)
from serving_layer.query.groups import GroupKey, GroupStates, MergedPoint, Totals, Values
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.query.sensor_coverage import sensor_sources
from serving_layer.query.snapshot import ReadSnapshot
from serving_layer.query.timeline import PointLabel, QueryRange, timeline, zone_named
from serving_layer.store.cells import MergedCells, waiting_reach
from serving_layer.store.day_cells import ViewDays
from views.core.cells import Addition
from views.core.cut import is_fresh, seconds
from views.core.day_cells import DAY_SECONDS, DAY_WINDOWS, RECEIPTS
from views.core.local_time import STEP, BusinessDays, Span, open_periods, round_down
from views.core.view import flags_counted

DAY_GRAINS = frozenset(("day", "week", "month", "year", "total"))


def takes_day_cells(query: ResolvedQuery) -> bool:
    """Whether day cells may answer a query: it adds up whole days, and nothing in it depends on single windows."""
    metric = query.metric
    if query.grain not in DAY_GRAINS or query.compare is not None or query.left_out is not None:
        return False
    if query.counts_open_windows or query.only_covered or query.needs_whole_days or metric.facts:
        return False
    if sensor_sources(query.views) or "low_coverage" in metric.flags:
        return False
    return all(_takes_columns(sums) for sums in empty_sums(query))


def _takes_columns(sums: StateSums) -> bool:
    return not sums.selection.needs_master and not any(map(is_product_dimension, sums.split))


@dataclass
class _Rows:
    """The cells of one view by columns: day cells, then speed rows.

    Attributes:
        days: the day cells.
        stored: the rows of `days` that count.
        speed: the speed rows that count, each behind the place of its store.
        store: the place of the store per row.
        label: the number of the label per row.
    """

    days: ViewDays
    stored: Integers
    speed: Sequence[tuple[int, Addition]]
    store: Integers
    label: Integers

    @property
    def is_cut(self) -> bool:
        """Whether some rows of `days` do not count."""
        return len(self.stored) < len(self.days.starts)

    @cached_property
    def provisional(self) -> Booleans:
        """Whether the row is a speed row."""
        return np.arange(len(self.store)) >= len(self.stored)

    def state(self, name: str) -> StateColumn:
        """The values of a state per row."""
        place = list(self.days.view.columns).index(name)
        more = [row.states[place] for _, row in self.speed]
        stored = self.days.state(name)
        if self.is_cut:
            stored = stored.take(self.stored)
        return StateColumn.of(self.days.view.columns[name].by, stored, more)

    def dimension(self, name: str) -> tuple[Integers, list[str | None]]:
        """The number of the value of a dimension per row, and the values."""
        place = list(self.days.view.dimensions).index(name)
        texts = self.days.dimension(name)
        if not self.speed:
            return texts.numbers[self.stored] if self.is_cut else texts.numbers, texts.values
        values = list(texts.values)
        number = {text: at for at, text in enumerate(values)}
        more = []
        for _, row in self.speed:
            text = row.key.dimensions[place]
            more.append(number.setdefault(text, len(number)))
        values += list(number)[len(values) :]
        return np.concatenate([texts.numbers[self.stored], np.array(more, np.int64)]), values


@dataclass
class DayTotals:
    """The totals of one query from day cells. `read` finds which stores they can answer for, `merge` adds them up.

    Attributes:
        query: what is asked.
        days: the day cells of every view that it reads.
        stores: the stores that are answered.
        groups: by the id of a store the values of its groups.
    """

    query: ResolvedQuery
    days: Sequence[ViewDays]
    stores: list[StoreQuery]
    groups: Mapping[str, Values] = field(default_factory=dict)
    _labels: dict[str, tuple[Integers, Booleans]] = field(default_factory=dict)

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
            days.append(await cells.days.read(snapshot.pointer.manifest, view, start, end))
        return await off_loop(_cells_of(days), lambda: cls._of(query, days))

    @classmethod
    def _of(cls, query: ResolvedQuery, days: Sequence[ViewDays]) -> "DayTotals":
        """The totals of the stores that can be answered from these day cells."""
        groups = {of.store.id: found for of in query.stores if (found := _groups_of(query, of)) is not None}
        without = set[str]().union(*(each.without for each in days))
        able = [of for of in query.stores if of.store.id in groups and of.store.id not in without]
        totals = cls(query, days, able, groups)
        apart = set[str]().union(*(totals._cut_apart(each) for each in days))
        return totals.only({of.store.id for of in able} - apart)

    def only(self, stores: Collection[str]) -> "DayTotals":
        """Answer for these stores alone."""
        if len(stores) == len(self.stores):
            return self
        return DayTotals(self.query, self.days, [of for of in self.stores if of.store.id in stores], self.groups)

    async def merge(self, snapshot: ReadSnapshot, cells: MergedCells) -> "MergedDays":
        """Read the speed rows of the stores, and merge the states of both layers.

        Raises:
            NeedsWindowsError: only whoever merges cells one by one can answer.
            CassandraUnavailableError: Cassandra does not answer.
        """
        ids = [of.store.id for of in self.stores]
        spans = {of.store.id: Span(of.timeline.start, of.timeline.end) for of in self.stores}
        speed = [await cells.speed.rows_of(snapshot, days.view, ids) for days in self.days]
        waiting = await cells.speed.waiting_of(snapshot, waiting_reach(self.query.views), spans)

        def merged() -> MergedDays:
            rows = [self._rows(days, own, snapshot) for days, own in zip(self.days, speed, strict=True)]
            return MergedDays.of(self, rows, waiting, round_down(seconds(snapshot.as_of_at)))

        fresh = sum(len(rows) for own in speed for rows in own.values())
        return await off_loop(_cells_of(self.days) + fresh, merged)

    @cached_property
    def ranges(self) -> list[QueryRange]:
        """The different ranges of the stores."""
        return list(dict.fromkeys(of.range for of in self.stores))

    @cached_property
    def labels(self) -> list[int]:
        """The numbers of all labels, in order."""
        return sorted({label.number for each in self.ranges for label in each.labels})

    @cached_property
    def place(self) -> Mapping[str, int]:
        """The place of each store by its id."""
        return {of.store.id: place for place, of in enumerate(self.stores)}

    @cached_property
    def _range_of(self) -> Integers:
        number = {each: place for place, each in enumerate(self.ranges)}
        return np.array([number[of.range] for of in self.stores], np.int64)

    def _places(self, days: ViewDays) -> Integers:
        """The place of the store per row; -1 for others."""
        places = [self.place.get(store or "", -1) for store in days.stores.values]
        return np.array(places, np.int64)[days.stores.numbers]

    def _labelled(self, days: ViewDays, places: Integers) -> tuple[Integers, Booleans]:
        """Per row the number of its label, -1 if no window of it counts; and whether only some of its windows do."""
        if days.view.name not in self._labels:
            self._labels[days.view.name] = self._label(days, places)
        return self._labels[days.view.name]

    def _label(self, days: ViewDays, places: Integers) -> tuple[Integers, Booleans]:
        label, is_apart = np.full(len(places), -1), np.zeros(len(places), bool)
        number = {label: place for place, label in enumerate(self.labels)}
        ranges = np.append(self._range_of, -1)[places]
        for place, each in enumerate(self.ranges):
            line = timeline(each.grain, each.days, *each.span)
            rows = np.flatnonzero(ranges == place)
            is_whole = len(rows) == len(ranges)
            start, end = (days.starts, days.ends) if is_whole else (days.starts[rows], days.ends[rows])
            starts, ends = (np.array(bounds) for bounds in zip(*line.spans, strict=True))
            of_span = np.array([number[each.labels[point].number] for point in line.points])
            at = np.clip(np.searchsorted(starts, start, side="right") - 1, 0, None)
            is_outside = (end <= line.start) | (start >= line.end)
            is_inside = ~is_outside & (start >= starts[at]) & (end <= ends[at])
            label[rows[is_inside]] = of_span[at[is_inside]]
            is_apart[rows] = ~is_inside & ~is_outside
        return label, is_apart

    def _cut_apart(self, days: ViewDays) -> set[str]:
        """The stores that have windows in several points where the run kept one state."""
        places = self._places(days)
        _, is_apart = self._labelled(days, places)
        return {self.stores[place].store.id for place in np.unique(places[is_apart]).tolist()}

    def _rows(self, days: ViewDays, speed: Mapping[str, Iterable[Addition]], snapshot: ReadSnapshot) -> _Rows:
        places = self._places(days)
        label, _ = self._labelled(days, places)
        stored = np.flatnonzero(label >= 0)
        number = {each: place for place, each in enumerate(self.labels)}
        fresh, labels = [], []
        for store, rows in speed.items():
            of = self.stores[self.place[store]]
            starts, line = [span.start for span in of.timeline.spans], of.timeline
            own = of.range.labels
            for row in rows:
                if is_fresh(row.epoch, snapshot.pointer.cut) and line.start <= row.key.window < line.end:
                    point = line.points[bisect_right(starts, row.key.window) - 1]
                    fresh.append((self.place[store], row))
                    labels.append(number[own[point].number])
        store_places = np.concatenate([places[stored], np.array([place for place, _ in fresh], np.int64)])
        return _Rows(days, stored, fresh, store_places, np.concatenate([label[stored], np.array(labels, np.int64)]))


def _cells_of(days: Iterable[ViewDays]) -> int:
    """How many cells take as long as the rows of these days."""
    rows: int = sum(table.num_rows for each in days for table in each.tables)
    return rows // ROWS_PER_CELL


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

    @classmethod
    def of(cls, totals: DayTotals, rows: Sequence[_Rows], waiting: int, over: int) -> "MergedDays":
        """Merge rows, one set per view. `over`: where the windows end that are over."""
        query, sums = totals.query, empty_sums(totals.query)
        by_view = {each.days.view.name: each for each in rows}
        currencies = _currencies(totals, [by_view[name] for name in dict.fromkeys(each.view.name for each in sums)])
        is_known = _known(totals, rows)
        key_of = []
        for of, own in zip(totals.stores, currencies, strict=True):
            code = own if query.metric.is_of_money and CURRENCY not in query.by else None
            store = None if query.merges_stores else of.store.id
            key_of.append(GroupKey(store, totals.groups[of.store.id], code))
        keys = sorted(set(key_of), key=lambda key: key.order)
        number = {key: place for place, key in enumerate(keys)}
        group = np.array([number[key] for key in key_of], np.int64)
        series = _Series(query.by, sums)
        states = [
            _merged(totals, each, by_view[each.view.name], np.where(is_known, group, -1), series) for each in sums
        ]
        groups = [_group(totals, key, group == place, is_known, over) for place, key in enumerate(keys)]
        flags = sum((_event_flags(totals, each) for each in rows), Counter[str]())
        return cls(totals, keys, states, groups, waiting, flags)

    @property
    def points(self) -> int:
        """How many there are over all groups, and over all series of theirs."""
        return sum(len(each.points) for each in self.groups) + sum(len(each.group) for each in self.states)

    def states_of(self, number: int) -> list[MergedStates]:
        """The states of one group."""
        return [each.where(each.group == number) for each in self.states]

    def add_to(self, into: Totals) -> None:
        """Put the groups with all their states into totals that have no store yet."""
        for number, group in enumerate(self.groups):
            for sums, states in zip(group.now.sums, self.states_of(number), strict=True):
                sums.points = states.points()
        self.count_in(into)

    def count_in(self, into: Totals) -> None:
        """Put the groups into totals as they are, and what was counted beside them."""
        zones = {of.zone for of in self.totals.stores}
        into.adopt(self.groups, self.points, waiting=self.waiting, zones=zones, event_flags=self.event_flags)


class _Series:
    """Numbers the values of dimensions. Sums that are split by all of `by` share them, so that series meet."""

    def __init__(self, by: Sequence[str], sums: Sequence[StateSums]) -> None:
        self._by = tuple(by)
        self._is_shared = sum(each.split == self._by for each in sums) > 1
        self._number: dict[Group, int] = {}

    def numbered(self, sums: StateSums, rows: _Rows, used: Integers) -> tuple[Integers, Sequence[Group]]:
        """The number of the series per row of `used`, and all series."""
        if not sums.split:
            return np.zeros(len(used), np.int64), [()]
        code, values = np.zeros(len(used), np.int64), list[list[str | None]]()
        for name in sums.own_split:
            numbers, own = rows.dimension(name)
            code = code * len(own) + (numbers[used] if len(used) < len(numbers) else numbers)
            values.append(own)
        found, code = occurring(code, math.prod(map(len, values)))
        series = CodedSeries(found, values)
        if not self._is_shared or sums.split != self._by:
            return code, series
        places = [self._number.setdefault(group, len(self._number)) for group in series]
        return np.array(places, np.int64)[code], list(self._number)


class CodedSeries(Sequence[Group]):
    """Values of dimensions by number, each made when it is needed: few of very many are shown."""

    def __init__(self, codes: Integers, values: Sequence[Sequence[str | None]]) -> None:
        """`codes`: the places of the values of every dimension, as one number. `values`: of every dimension."""
        self._codes, self._values = codes, values

    def __len__(self) -> int:
        """How many there are."""
        return len(self._codes)

    @overload
    def __getitem__(self, at: int) -> Group: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Group]: ...
    def __getitem__(self, at: int | slice) -> Group | Sequence[Group]:
        """The values of a number, or of several."""
        if isinstance(at, slice):
            return CodedSeries(self._codes[at], self._values)
        code, group = int(self._codes[at]), list[str | None]()
        for own in reversed(self._values):
            code, place = divmod(code, len(own))
            group.append(own[place])
        return tuple(reversed(group))


def _merged(totals: DayTotals, sums: StateSums, rows: _Rows, group: Integers, series: _Series) -> MergedStates:
    """`group`: the number of the group per store; -1 for stores of which nothing is known."""
    of_row = group[rows.store] if len(group) else rows.store
    counts = of_row >= 0
    for name, chosen in sums.where:
        numbers, values = rows.dimension(name)
        counts &= np.array([value in chosen for value in values], bool)[numbers]
    used = np.flatnonzero(counts)
    number, names = series.numbered(sums, rows, used)
    columns, key, provisional = [rows.state(name) for name in sums.columns], (of_row, rows.label), rows.provisional
    if len(used) < len(of_row):
        columns, key = [each.where(used) for each in columns], (of_row[used], rows.label[used])
        provisional = provisional[used]
    places = key[0], number, key[1]
    return MergedStates.of(sums, names, totals.labels, key=places, provisional=provisional, columns=columns)


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


def _currencies(totals: DayTotals, rows: Iterable[_Rows]) -> list[str]:
    """The currency of the amounts of each store; its own if it has none.

    Raises:
        NeedsWindowsError: a store has amounts of several, and the query would add them.
    """
    found: list[set[str]] = [set() for _ in totals.stores]
    for each in rows:
        if CURRENCY in each.days.view.dimensions:
            numbers, values = each.dimension(CURRENCY)
            pairs, _ = occurring(each.store * len(values) + numbers, len(totals.stores) * len(values))
            for pair in pairs.tolist():
                place, value = divmod(pair, len(values))
                found[place].add(values[value] or "")
    own = [of.store.currency.code for of in totals.stores]
    if CURRENCY in totals.query.by or not totals.query.metric.is_of_money:
        return own
    if any(len(codes) > 1 for codes in found):
        raise NeedsWindowsError
    return [next(iter(codes), code) for codes, code in zip(found, own, strict=True)]


def _known(totals: DayTotals, rows: Iterable[_Rows]) -> Booleans:
    """Per store whether it has the source of every view: a till always, a registered sensor, or any cell."""
    found = np.ones(len(totals.stores), bool)
    for each in rows:
        has_cells = np.zeros(len(totals.stores), bool)
        has_cells[each.store] = True
        topic = each.days.view.source.topic
        registered = [
            topic in {POS_TRANSACTIONS.topic, *(of.source for of in at.store.sensors)} for at in totals.stores
        ]
        found &= has_cells | np.array(registered, bool)
    return found


def _group(totals: DayTotals, key: GroupKey, is_in: Booleans, is_known: Booleans, over: int) -> GroupStates:
    """A group of stores without its states. `is_in`, `is_known`: per store."""
    group, ranges = GroupStates.empty(totals.query, key), Counter[QueryRange]()
    for place in np.flatnonzero(is_in).tolist():
        of = totals.stores[place]
        group.zones.add(of.zone)
        ranges[of.range] += 1
        (group.counted if is_known[place] else group.missing).add(of.store.id)
    if group.missing:
        group.reasons.add(NO_SOURCE)
    if group.counted:
        group.now.over = over
    for each, stores in ranges.items():
        for label, span, has_several_days in _points(each):
            point = MergedPoint(label, span, has_several_days, stores=stores)
            there = group.points.setdefault(label.number, point)
            if there is not point:
                there.merge(point)
    return group


@lru_cache(maxsize=64)
def _points(of: QueryRange) -> list[tuple[PointLabel, Span, bool]]:
    """The label and windows of each point, and whether it has windows of several business days."""
    bounds, days = timeline(of.grain, of.days, *of.span).bounds, of.days
    several = (days.day_of(bound.start) != days.day_of(bound.end - STEP) for bound in bounds)
    return list(zip(of.labels, bounds, several, strict=True))


def _event_flags(totals: DayTotals, rows: _Rows) -> Counter[str]:
    """How many events of a view carry each flag, over all stores."""
    view, found = rows.days.view, Counter[str]()
    flags = flags_counted(view)
    names = list(view.columns)
    for flag, place in flags.items():
        found[flag] = int(rows.state(names[place]).values.sum())
    if flags and RECEIPTS in view.columns:
        found[OUTSIDE_OPENING_HOURS] = _closed_receipts(totals, rows)
    return +found


def _closed_receipts(totals: DayTotals, rows: _Rows) -> int:
    """How many receipts lie outside the opening hours of their store, where it has any."""
    by_hours: dict[tuple[Hours, int, int], list[int]] = {}
    for place, of in enumerate(totals.stores):
        if of.store.opening_hours:
            key = (hours_of(of.store), of.timeline.start, of.timeline.end)
            by_hours.setdefault(key, []).append(place)
    if not by_hours:
        return 0
    schedule = np.full(len(totals.stores), -1)
    at = list(rows.days.view.columns).index(RECEIPTS)
    closed, until = 0, rows.days.receipts[rows.stored]
    base = rows.days.starts[rows.stored] // DAY_SECONDS * DAY_SECONDS
    for number, (key, places) in enumerate(by_hours.items()):
        schedule[places] = number
        own = np.flatnonzero(schedule[rows.store[: len(rows.stored)]] == number)
        opens, closes = open_intervals(*key)
        closed += int(until[own, -1].sum(dtype=np.int64)) - _receipts_between(until, own, base[own], opens, closes)
    intervals = [open_intervals(*key) for key in by_hours]
    for place, row in rows.speed:
        if schedule[place] >= 0:
            opens, closes = intervals[schedule[place]]
            last = int(np.searchsorted(opens, row.key.window, side="right")) - 1
            if last < 0 or closes[last] <= row.key.window:
                closed += int(row.states[at] or 0)
    return closed


def _receipts_between(
    until: npt.NDArray[np.int32], rows: Integers, base: Integers, opens: Integers, closes: Integers
) -> int:
    """The receipts within intervals that do not overlap.

    Args:
        until: per row and window of its day the receipts until its end.
        rows: those that count.
        base: where the UTC days of these rows start.
        opens: where the intervals start, in order.
        closes: where they end.
    """
    found, place = 0, np.searchsorted(closes, base, side="right")
    while True:
        reaches = place < len(opens)
        reaches[reaches] = opens[place[reaches]] < base[reaches] + DAY_SECONDS
        rows, base, place = rows[reaches], base[reaches], place[reaches]
        if not len(rows):
            return found
        for bounds, sign in ((opens, -1), (closes, 1)):
            window = np.clip((bounds[place] - base) // STEP, 0, DAY_WINDOWS)
            before = np.where(window > 0, until[rows, np.maximum(window - 1, 0)], 0)
            found += sign * int(before.sum(dtype=np.int64))
        place = place + 1


Hours = tuple[str, tuple[tuple[str, tuple[str, ...]], ...], tuple[date, ...]]
"""The time zone of a store, its opening hours by weekday, and the dates on which it is closed."""


def hours_of(store: Store) -> Hours:
    """When a store is open."""
    hours = tuple((day, tuple(periods)) for day, periods in sorted(store.opening_hours.items()))
    return store.timezone, hours, tuple(sorted(store.closed_on))


@lru_cache(maxsize=1024)
def open_intervals(hours: Hours, start: int, end: int) -> tuple[Integers, Integers]:
    """When a store with these hours opens and closes in [start, end), as intervals that do not overlap."""
    zone, weekdays, closed_on = hours
    store = Store(id="", timezone=zone, opening_hours=dict(weekdays), closed_on=closed_on)
    opens, closes = list[int](), list[int]()
    for first, last in sorted(open_periods(store, start, end)):
        if closes and first <= closes[-1]:
            closes[-1] = max(closes[-1], last)
        elif first < last:
            opens.append(first)
            closes.append(last)
    return np.array(opens, np.int64), np.array(closes, np.int64)
