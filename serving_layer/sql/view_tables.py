"""The tables of views: `sales_day`, `traffic_15m` and so on. Their values are those of REST, to the digit.

A row is a point of a series that is split by all dimensions of the view, if any event is in it; a day without events
has no row. So a row does not depend on the range that is read. Values come through the stages of `serving_layer.query`,
evaluated at the points that have rows. The columns are the metrics that the view alone answers, and its states that are
summed, for statements that add up rows and divide then.
"""

import asyncio
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from functools import cached_property
from itertools import groupby
from typing import Literal, NamedTuple

import pyarrow as pa
from cachetools import LRUCache

from master_dataset.registry.stores import Store, currency
from serving_layer.caching import keep
from serving_layer.query.aggregate import CURRENCY, PointStates, SeriesKey, aggregate
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.evaluate import evaluate_places
from serving_layer.query.fetch import StoreData, fetch
from serving_layer.query.render import Finality, money, rendered
from serving_layer.query.resolve import MetricRequest, ResolvedQuery, resolve
from serving_layer.responses.encoding import iso_epoch
from serving_layer.sql.table import (
    DATE,
    FLAG,
    INSTANT,
    REAL,
    TEXT,
    WHOLE,
    ColumnValues,
    Needed,
    Reading,
    Span,
    TableColumn,
    arrow_table,
    empty_table,
    store_by_store,
)
from serving_layer.timeline import zone_named
from views.core import View
from views.core.aggregates import Histogram
from views.core.cells import WAITING, Shape
from views.core.cut import instant, seconds
from views.core.formula import Formula
from views.core.local_time import FIRST_ANSWERED, LAST_ANSWERED, ONE_DAY, STEP, BusinessDays, first_instant
from views.core.metric import Metric

TableGrain = Literal["15m", "hour", "day"]
GRAINS: tuple[TableGrain, ...] = ("15m", "hour", "day")
DAYS_AT_ONCE: Mapping[TableGrain, int] = {"15m": 7, "hour": 28, "day": 366}
"""How many days of a store are evaluated at once."""
STORE, START, BUSINESS_DAY = "store", "start", "day"
FINAL, PUBLICATION, PROVISIONAL = "final", "publication", "provisional"
_ANY_DAY = ("2000-01-01", "2000-01-02")
ROWS = "rows"
"""The id of the metric whose points are the rows of a table."""
_FIRST_INSTANT = datetime.combine(FIRST_ANSWERED - 2 * ONE_DAY, time(), UTC)
_LAST_INSTANT = datetime.combine(LAST_ANSWERED + 2 * ONE_DAY, time(), UTC)
"""Beyond the days that are answered, in any time zone."""
FILTER = "Filter `{time}` and `store`, as in `WHERE {time} >= current_date - interval '7 days'`."


class ViewTable:
    """The points of a view at one grain."""

    def __init__(
        self,
        view: View,
        grain: TableGrain,
        catalogue: Catalogue,
        money_type: pa.DataType,
        settled: LRUCache[Hashable, pa.Table],
    ) -> None:
        """Choose its columns.

        Args:
            view: the view.
            grain: of the points.
            catalogue: the registered views and metrics.
            money_type: the type of amounts.
            settled: where settled days are kept as they were read, for all tables of the process.
        """
        self._view, self._grain, self._catalogue, self._money_type = view, grain, catalogue, money_type
        self.name = f"{view.name}_{grain}"
        self.about = view.question
        self.time = BUSINESS_DAY if grain == "day" else START
        self.bounded = frozenset({STORE})
        self.is_of_version = True
        self.reads_speed = True
        self._settled = settled
        self.key: Sequence[str] = () if view.dimensions else (STORE, self.time)  # a dimension may be null

    def views(self, needed: Needed) -> Collection[View]:  # noqa: ARG002 - as every table
        """The view."""
        return (self._view,)

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that the view alone answers at this grain, by id."""
        return {
            metric.id: metric
            for metric in self._catalogue.metrics.values()
            if metric.views == (self._view.name,) and has_column(metric, self._grain, self._view)
        }

    @cached_property
    def states(self) -> Mapping[str, bool]:
        """The other states that are summed, by name, and whether each is an amount.

        It is if its name, or that of the only column that it sums, is the id of a metric of money.
        """
        sums = {
            f"{name}_{suffix}" if suffix else name: column.of
            for name, of in self._view.metrics.items()
            if not isinstance(of, Histogram)
            for suffix, column in of.columns.items()
            if column.by == "sum"
        }
        amounts = {metric.id for metric in self._catalogue.metrics.values() if metric.unit == "money"}
        taken = {*self.metrics, *self._view.dimensions, STORE, self.time, FINAL, PUBLICATION, PROVISIONAL}
        return {name: not amounts.isdisjoint((name, of)) for name, of in sums.items() if name not in taken}

    @cached_property
    def columns(self) -> Sequence[TableColumn]:
        """Store and time, the dimensions, metrics and states, and what the row was computed from."""
        at = (
            TableColumn(BUSINESS_DAY, DATE, "Business day of the store.")
            if self._grain == "day"
            else TableColumn(START, INSTANT, "When the window or hour begins.")
        )
        return (
            TableColumn(STORE, TEXT, "Id of the store."),
            at,
            *(
                TableColumn(name, TEXT, "Dimension of the view; null if an event does not say it.")
                for name in self._view.dimensions
            ),
            *(
                TableColumn(name, self._metric_type(each), f"{each.name}: {each.formula.text}, in {each.unit}.")
                for name, each in self.metrics.items()
            ),
            *(
                TableColumn(name, self._money_type if is_money else WHOLE, "State of the view; may be added up.")
                for name, is_money in self.states.items()
            ),
            TableColumn(FINAL, FLAG, "No event that was received so far can still change the row."),
            TableColumn(PUBLICATION, WHOLE, "Number of the publication that was read."),
            TableColumn(PROVISIONAL, FLAG, "Not final: it includes speed rows, or was not over at the cut."),
        )

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """The rows of the stores and times that are needed. See `Table`."""
        chosen = [each for each in self.columns if each.name in needed.columns]
        stores = reading.chosen(needed)
        views = self._views_read(needed, stores)
        await reading.cells.speed.read_ahead(reading.version.snapshot, [*views, WAITING], [each.id for each in stores])

        async def of_store(store: Store) -> list[pa.Table]:
            tables = []
            for part in await self._parts(reading, needed, views, store):
                tables.append(await self._table(reading, needed, store, part))
                reading.budget.add(tables[-1].num_rows, self.name, FILTER.format(time=self.time))
            return tables

        return pa.concat_tables([empty_table(chosen), *await store_by_store(stores, of_store)])

    def _views_read(self, needed: Needed, stores: Sequence[Store]) -> Sequence[View]:
        """The view, and those that say whether its sensors were there."""
        views = {self._view.name: self._view}
        for store in stores[:1]:
            for query in self._queries(needed, store, *_ANY_DAY).values():
                views |= {view.name: view for view in (*query.views, *query.proofs)}
        return list(views.values())

    async def _table(self, reading: Reading, needed: Needed, store: Store, part: "_Days") -> pa.Table:
        of_table = self.name, self._money_type, needed.columns
        key = of_table, store.id, part.start, part.end, reading.version.batch_key
        known = self._settled.get(key) if part.is_settled else None
        if known is None:
            read = await self._read(reading, needed, store, part)
            values = await asyncio.to_thread(read.values, reading)
            known = arrow_table([each for each in self.columns if each.name in needed.columns], values)
            if part.is_settled:
                keep(self._settled, key, known)
        return known

    async def _parts(self, reading: Reading, needed: Needed, views: Sequence[View], store: Store) -> Sequence["_Days"]:
        """The ranges in which the store may have cells, as far as they are needed."""
        with_cells = await days_with_cells(reading, [self._view], store)
        if not with_cells or needed.span.is_empty:
            return []
        zone = zone_named(store.timezone)
        days = BusinessDays.of(store, zone) if self._grain == "day" else BusinessDays(zone)
        parts = parts_of(needed.span, days, with_cells, DAYS_AT_ONCE[self._grain])
        fresh = await fresh_days(reading, [*views, WAITING], store, days)
        cut = days.day_of(seconds(reading.version.snapshot.pointer.cut))

        def bounds(first: date, until: date) -> tuple[str, str]:
            if self._grain == "day":
                return first.isoformat(), until.isoformat()
            # hours of the clock: a business day may begin within one
            return iso_epoch(first_instant(zone, first)), iso_epoch(first_instant(zone, until))

        return [_Days(*bounds(first, until), is_settled) for first, until, is_settled in split_at(parts, fresh, cut)]

    def _queries(self, needed: Needed, store: Store, start: str, end: str) -> Mapping[str, ResolvedQuery]:
        """What is asked of a store: the points that are rows, and each metric that is needed."""
        states = [name for name in self.states if name in needed.columns] or [next(iter(self._existence))]
        rows = Metric(ROWS, ROWS, Formula(" + ".join(states)), "n", self._view.name)
        catalogue = replace(self._catalogue, metrics={**self.metrics, ROWS: rows})
        names = (ROWS, *(each for each in self.metrics if each in needed.columns))
        by = tuple(self._view.dimensions)
        return {
            name: resolve(MetricRequest(name, (store.id,), start, end, grain=self._grain, by=by), [store], catalogue)
            for name in names
        }

    async def _read(self, reading: Reading, needed: Needed, store: Store, part: "_Days") -> "_Part":
        reads: list[_MetricRead] = []
        known: dict[object, StoreData] = {}
        for query in self._queries(needed, store, part.start, part.end).values():
            same = tuple(view.name for view in query.proofs), query.counts_open_windows
            if same not in known:
                [known[same]] = await fetch(query, query.stores, reading.version.snapshot, reading.cells)
            reads.append(_MetricRead(query, replace(known[same], query=query.stores[0])))
        return _Part(self, store, reads[0], reads[1:])

    @cached_property
    def _existence(self) -> Sequence[str]:
        """States whose points are the rows, the cheapest to merge first."""
        return sorted(self._view.columns, key=lambda name: self._view.columns[name].by != "sum")

    def _metric_type(self, metric: Metric) -> pa.DataType:
        if metric.unit == "money" and metric.formula.is_sum:
            return self._money_type
        return WHOLE if metric.unit == "n" else REAL


class _Days(NamedTuple):
    """Days of a store that are read together.

    Attributes:
        start: as in a request.
        end: likewise.
        is_settled: whether all of it was published, and no event has come since.
    """

    start: str
    end: str
    is_settled: bool


class _MetricRead(NamedTuple):
    """A query for one metric, and the cells of its store."""

    query: ResolvedQuery
    data: StoreData


class _Part(NamedTuple):
    """What was read of one store for a part of a table.

    Attributes:
        table: whose rows.
        store: of which store.
        rows: gives the rows, and states.
        metrics: the metrics that are needed.
    """

    table: ViewTable
    store: Store
    rows: _MetricRead
    metrics: Sequence[_MetricRead]

    def values(self, reading: Reading) -> Mapping[str, ColumnValues]:
        """The columns of the table that were read, and those that cost nothing."""
        [sums] = aggregate(*self.rows).now.sums
        line = self.rows.query.stores[0]
        dimensions = self.rows.query.by
        places: dict[SeriesKey, list[int]] = {}
        points: list[PointStates] = []
        for group, found in sums.points.items():
            places[SeriesKey(self.store.id, tuple(zip(dimensions, group, strict=True)))] = list(found)
            points += found.values()
        keys = [dict(key.dimensions) for key, numbers in places.items() for _ in numbers]
        numbers = [number for of in places.values() for number in of]
        digits = [currency(key.get(CURRENCY) or self.store.currency.code).digits for key in keys]
        bounds = [line.timeline.bounds[number] for number in numbers]
        snapshot = reading.version.snapshot
        finality = Finality.of(self.rows.query, snapshot, self.rows.data.waiting)
        is_final = [
            finality.holds(bound, is_provisional=point.is_provisional)
            for point, bound in zip(points, bounds, strict=True)
        ]
        values: dict[str, ColumnValues] = {
            STORE: [self.store.id] * len(keys),
            BUSINESS_DAY: [line.range.labels[number].day for number in numbers],
            START: [instant(bound.start) for bound in bounds],
            **{name: [key[name] for key in keys] for name in dimensions},
            FINAL: is_final,
            PUBLICATION: [snapshot.pointer.publication] * len(keys),
            PROVISIONAL: [not each for each in is_final],
        }
        for place, name in enumerate(sums.columns):
            states = [point.states[place] for point in points]
            is_money = self.table.states.get(name, False)
            values[name] = (
                [money(int(each or 0), of) for each, of in zip(states, digits, strict=True)] if is_money else states
            )
        for query, data in self.metrics:
            evaluated = evaluate_places(query, aggregate(query, data), places)
            of_points = [point.value for _, series in evaluated for point in series]
            values[query.metric.id] = [
                rendered(value, query.metric, of) for value, of in zip(of_points, digits, strict=True)
            ]
            reading.budget.add(0, self.table.name, "")
        return values


def has_column(metric: Metric, grain: str, view: View) -> bool:
    """Whether rows of a grain have a value of a metric: a number that depends on nothing beyond the row."""
    depends_on_others = any(term.is_sequential or term.is_total for term in metric.terms.values())
    is_split = metric.is_split or not view.dimensions
    has_grain = not metric.grains or grain in metric.grains
    return metric.unit != "list" and not depends_on_others and is_split and has_grain


async def days_with_cells(reading: Reading, views: Sequence[Shape], store: Store) -> set[date]:
    """The UTC days of which views may have cells of a store."""
    snapshot, found = reading.version.snapshot, set[date]()
    for view in views:
        found |= set(await reading.cells.batch.days(snapshot.pointer.manifest, view.name))
        fresh = await reading.cells.speed.rows(snapshot, view, store.id)
        found |= {instant(row.key.window).date() for row in fresh}
    return found


async def fresh_days(reading: Reading, views: Sequence[Shape], store: Store, days: BusinessDays) -> set[date]:
    """The local days in which rows of the speed layer may count, and those before and after them.

    What was before in a business day can matter, and it may lie on another day of the clock.
    """
    found = set[date]()
    for view in views:
        for row in await reading.cells.speed.rows(reading.version.snapshot, view, store.id):
            day = days.day_of(row.key.window)
            found |= {day - ONE_DAY, day, day + ONE_DAY}
    return found


def split_at(
    parts: Iterable[tuple[date, date]], fresh: Collection[date], cut: date
) -> Iterator[tuple[date, date, bool]]:
    """Split parts where days begin or end that are settled.

    Args:
        parts: first days, and the days after the last ones.
        fresh: days with rows of the speed layer.
        cut: the day of the cut.

    Yields:
        First day, the day after the last one, and whether they are settled: before the cut, and without such rows.
    """
    for first, until in parts:
        every = [first + ONE_DAY * number for number in range((until - first).days)]
        for is_settled, run in groupby(every, lambda day: day not in fresh and day + ONE_DAY < cut):
            own = list(run)
            yield own[0], own[-1] + ONE_DAY, is_settled


def parts_of(span: Span, days: BusinessDays, with_cells: set[date], most: int) -> list[tuple[date, date]]:
    """The local days of a span that can be asked for, in parts, without those that have no cells.

    Args:
        span: dates or instants.
        days: the days of the store.
        with_cells: the UTC days that may have cells.
        most: how many days a part has.

    Returns:
        First day, and the day after the last one.
    """
    first, last = FIRST_ANSWERED, LAST_ANSWERED
    if span.first is not None:
        first = max(first, _day(span.first, days))
    if span.last is not None:
        last = min(last, _day(span.last, days))
    around = {each + ONE_DAY * apart for each in with_cells for apart in (-1, 0, 1)}
    touched = sorted(day for day in around if first <= day <= last)  # a business day lies in up to three UTC days
    found: list[tuple[date, date]] = []
    for day in touched:
        if not found or found[-1][1] <= day:
            found.append((day, min(day + ONE_DAY * most, touched[-1] + ONE_DAY)))
    return found


def _day(at: date | datetime, days: BusinessDays) -> date:
    if not isinstance(at, datetime):
        return at
    within = min(max(at, _FIRST_INSTANT), _LAST_INSTANT)  # a calendar ends where BI tools say "always"
    window = int(within.timestamp()) // STEP * STEP
    return days.day_of(window)
