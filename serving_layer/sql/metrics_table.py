"""The table `metrics`: every metric of every store and business day, one value a row."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from master_dataset.errors import MixedCurrenciesError
from master_dataset.registry.stores import DEFAULT_CURRENCY, Store, currency
from serving_layer.query.aggregate import SeriesKey, StoreStates, aggregate, store_currency
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.evaluate import evaluate_places
from serving_layer.query.fetch import StoreData, fetch
from serving_layer.query.render import Finality, rendered
from serving_layer.query.resolve import MetricRequest, ResolvedQuery, resolve
from serving_layer.sql.list_tables import NUMBER, number_of
from serving_layer.sql.table import (
    DATE,
    FLAG,
    TEXT,
    WHOLE,
    ColumnValues,
    Needed,
    Reading,
    TableColumn,
    arrow_table,
    empty_table,
    store_by_store,
)
from serving_layer.sql.view_tables import DAYS_AT_ONCE, days_with_cells, parts_of
from serving_layer.timeline import zone_named
from views.core import View
from views.core.local_time import BusinessDays
from views.core.metric import Metric

METRIC, STORE, DAY = "metric", "store", "day"
SPLIT = "Query a table of the view, such as `sales_day`, with a row for each currency, or leave out the store or days."
FILTER = "Filter `metric`, `store` and `day`, as in `WHERE metric = 'net_sales' AND day >= current_date - 7`."


class MetricsTable:
    """The values that REST gives for each store and day without `by`, where any event is in them."""

    name, about = "metrics", "Every metric of every store and business day, where there are events."
    key: Sequence[str] = (METRIC, STORE, DAY)
    time: str | None = DAY
    bounded = frozenset({METRIC, STORE})
    is_of_version = True
    reads_speed = True
    columns = (
        TableColumn(METRIC, TEXT, "Id of the metric."),
        TableColumn(STORE, TEXT, "Id of the store."),
        TableColumn(DAY, DATE, "Business day of the store."),
        TableColumn("value", NUMBER, "Null: it cannot be known."),
        TableColumn("unit", TEXT, "n, money (in the major unit), percent, ratio, ms, ..."),
        TableColumn("currency", TEXT, "Of money."),
        TableColumn("final", FLAG, "No event that was received so far can still change it."),
        TableColumn("publication", WHOLE, "Number of the publication that was read."),
        TableColumn("provisional", FLAG, "Not final."),
    )

    def __init__(self, catalogue: Catalogue) -> None:
        """`catalogue`: the registered views and metrics."""
        self._catalogue = catalogue
        self.metrics: Mapping[str, Metric] = {
            metric.id: metric
            for metric in catalogue.metrics.values()
            if metric.unit != "list" and not metric.needs_by and (not metric.grains or "day" in metric.grains)
        }

    def views(self, needed: Needed) -> Collection[View]:
        """Those of the metrics that are chosen."""
        return [self._catalogue.views[name] for name in {name for each in self._chosen(needed) for name in each.views}]

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per metric, store and business day."""
        chosen = [each for each in self.columns if each.name in needed.columns]

        async def of_store(store: Store) -> list[pa.Table]:
            tables = []
            for metric in self._chosen(needed):
                views = [self._catalogue.views[name] for name in metric.views]
                with_cells = await days_with_cells(reading, views, store)
                if not with_cells or needed.span.is_empty:
                    continue
                days = BusinessDays.of(store, zone_named(store.timezone))
                for first, until in parts_of(needed.span, days, with_cells, DAYS_AT_ONCE["day"]):
                    request = MetricRequest(metric.id, (store.id,), first.isoformat(), until.isoformat(), grain="day")
                    query = resolve(request, [store], self._catalogue)
                    [data] = await fetch(query, query.stores, reading.version.snapshot, reading.cells)
                    values = await asyncio.to_thread(_values, reading, store, query, data)
                    tables.append(arrow_table(chosen, values))
                    reading.budget.add(tables[-1].num_rows, self.name, FILTER)
            return tables

        return pa.concat_tables([empty_table(chosen), *await store_by_store(reading.chosen(needed), of_store)])

    def _chosen(self, needed: Needed) -> list[Metric]:
        names = needed.values.get(METRIC)
        return [metric for name, metric in self.metrics.items() if names is None or name in names]


def _values(reading: Reading, store: Store, query: ResolvedQuery, data: StoreData) -> Mapping[str, ColumnValues]:
    [of], metric, snapshot = query.stores, query.metric, reading.version.snapshot
    line = of.timeline
    windows = {cell.key.window for view in query.views for cell in data.now.cells[view.name]}
    numbers = sorted({line.point_of(window) for window in windows if line.start <= window < line.end})
    states = aggregate(query, replace(data, query=of))
    code = _currency(query, states)
    finality, digits = Finality.of(query, snapshot, data.waiting), currency(code or DEFAULT_CURRENCY.code).digits
    [(_, points)] = evaluate_places(query, states, {SeriesKey(store.id): numbers})
    is_final = [
        finality.holds(line.bounds[number], is_provisional=point.is_provisional)
        for number, point in zip(numbers, points, strict=True)
    ]
    return {
        METRIC: [metric.id] * len(numbers),
        STORE: [store.id] * len(numbers),
        DAY: [of.range.labels[number].day for number in numbers],
        "value": [number_of(rendered(point.value, metric, digits)) for point in points],
        "unit": [metric.unit] * len(numbers),
        "currency": [code if metric.unit == "money" else None] * len(numbers),
        "final": is_final,
        "publication": [snapshot.pointer.publication] * len(numbers),
        "provisional": [not each for each in is_final],
    }


def _currency(query: ResolvedQuery, states: StoreStates) -> str | None:
    """That of the amounts, which may differ from the registered one; None if there can be none."""
    try:
        return store_currency(query, states)
    except MixedCurrenciesError as error:
        raise MixedCurrenciesError(error.message, do=SPLIT) from error
