"""What SQL answers is what REST answers, to the digit, and filters decide how much is read and never what is found."""

# ruff: noqa: S608, ISC004 - statements of a test

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import Store, currency
from serving_layer.files.tables import read
from serving_layer.sql.metrics_table import MetricsTable
from serving_layer.sql.view_tables import GRAINS, ViewTable
from tests.support.chains import FIRST, LAST, Chain, chains
from tests.support.examples import examples
from tests.support.sql_filters import Filter, filters, same
from tests.support.trading import tradings
from tests.support.world_sql import AskingSql
from views.core import View
from views.core.metric import Metric
from views.metrics import registered_metrics
from views.registry import registered_views

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
FEWER = settings(max_examples=examples(20, least=3), deadline=None, phases=PHASES)
MANY = settings(max_examples=260, deadline=None, phases=PHASES)
QUERIES = 4
"""Of each history that is drawn."""
AMOUNTS = {
    "basket_value",
    "discounts",
    "discounts_returned",
    "gross_sales",
    "net_sales",
    "payments",
    "returns_value",
}
"""The states that are money, which cells have in minor units and tables in the major unit."""
Place = tuple[str | None, ...]
"""Of a row or a point: its store, its day or instant, and its dimensions."""


class Shown(NamedTuple):
    """What REST shows. `final`: None where it does not say."""

    value: Any
    final: bool | None


@st.composite
def shapes(draw: st.DrawFn, table: str, columns: str, where: str) -> str:
    """The same query, written in one of the ways in which filters stand beside, outside or around it."""
    return draw(
        st.sampled_from(
            [
                f"select {columns} from {table} where {where}",
                f"select * from (select {columns} from {table}) as v where {where}",
                f"select * from (select {columns} from {table} where {where}) as v",
                f"with v as (select {columns} from {table}) select * from v where {where}",
                f"with v as (select * from {table} where {where}), w as (select * from v) select {columns} from w",
                f"select {columns} from public.{table} as t where {where} group by {columns}",
                f"select {columns} from {table} t join (select store from stores) s using (store) where {where}",
                f"select {columns} from (select store from stores) s left join {table} t using (store) "
                f"where {where} and {columns.split(', ')[1]} is not null",
            ]
        )
    )


def view_table(sql: AskingSql, view: str, grain: str) -> ViewTable:
    found = sql.sessions.sources.relations(sql.rest.world.stores).tables[f"public.{view}_{grain}"]
    assert isinstance(found, ViewTable)
    return found


def points_of(
    sql: AskingSql, view: View, grain: str, metrics: Sequence[str], days: tuple[date, date]
) -> Mapping[str, dict[Place, Shown]]:
    """By metric and place the points that REST gives for all stores, split by all dimensions."""
    first, last = days
    query: dict[str, Any] = {"grain": grain, "store": list(sql.rest.world.stores), "by": ["store", *view.dimensions]}
    query |= (
        {"from": str(first), "to": str(last)} if grain == "day" else {"from": f"{first}T00:00Z", "to": f"{last}T00:00Z"}
    )
    response = sql.rest.request("GET", f"/v1/metrics/{','.join(metrics)}", params=query)
    assert response.status_code == 200, response.text
    body = read(response.content)
    return {
        answer["metric"]: {
            (
                series["store"],
                point["date"] if grain == "day" else point["start"],
                *series["dimensions"].values(),
            ): Shown(point["value"], point["final"])
            for series in answer["series"]
            for point in series["points"]
        }
        for answer in body.get("answers", [body])
    }


def sums_of_cells(sql: AskingSql, view: View, grain: str, states: Sequence[str]) -> Mapping[str, dict[Place, Shown]]:
    """By state and place the sums over the cells that REST lists."""
    stores = sql.rest.world.stores
    query = {"from": str(FIRST - timedelta(days=1)), "to": str(LAST + timedelta(days=1)), "store": list(stores)}
    cells = read(sql.rest.request("GET", f"/v1/views/{view.name}/cells", params=query).content)["cells"]
    found: dict[str, dict[Place, Shown]] = {name: {} for name in states}
    for cell in cells:
        store, dimensions = stores[cell["store"]], cell["dimensions"]
        place = (store.id, label(datetime.fromisoformat(cell["window"]), store, grain), *dimensions.values())
        for name in states:
            value = state_of(cell["merged"], name) or 0
            if name in AMOUNTS:
                value = Decimal(value).scaleb(-currency(dimensions.get("currency") or store.currency.code).digits)
            before = found[name].get(place, Shown(0, None)).value
            found[name][place] = Shown(before + value, None)
    return found


def state_of(merged: Mapping[str, Any], name: str) -> Any:
    """A state by the name of its column: of a mean there are two, its sum and its number."""
    if name in merged:
        return merged[name]
    mean, _, suffix = name.rpartition("_")
    return merged[mean][suffix]


def label(window: datetime, store: Store, grain: str) -> str:
    """How REST names the point in which a window lies."""
    if grain == "day":
        begins = time.fromisoformat(store.day_starts_at)
        local = window.astimezone(ZoneInfo(store.timezone))
        return str(local.date() if local.time() >= begins else local.date() - timedelta(days=1))
    return f"{window.replace(minute=0) if grain == 'hour' else window:%Y-%m-%dT%H:%M:%SZ}"


def refuse_difference(sql: AskingSql, view: View, grain: str, data: st.DataObject) -> None:
    """A few columns of rows that a drawn filter lets through, each compared with what REST shows."""
    table, time_column = view_table(sql, view.name, grain), "day" if grain == "day" else "start"
    names = data.draw(st.lists(st.sampled_from([*table.metrics, *table.states]), min_size=1, max_size=3, unique=True))
    metrics, states = ([name for name in names if name in of] for of in (table.metrics, table.states))
    chosen, keys = data.draw(filters(time_column, list(view.dimensions))), ["store", time_column, *view.dimensions]
    statement = data.draw(shapes(table.name, ", ".join([*keys, *metrics, *states, "final"]), chosen.sql))

    rows: dict[Place, tuple[Any, ...]] = {}
    for store, at, *rest in sql.rows(statement):
        shown_at = str(at) if grain == "day" else f"{at:%Y-%m-%dT%H:%M:%SZ}"
        rows[store, shown_at, *rest[: len(view.dimensions)]] = tuple(rest[len(view.dimensions) :])

    days = chosen.first or FIRST, chosen.last or LAST
    of_metrics = points_of(sql, view, grain, metrics, days) if metrics and days[0] < days[1] else {}
    shown = {**of_metrics, **sums_of_cells(sql, view, grain, states)}
    series = {name: {(store, *dimensions) for store, _, *dimensions in points} for name, points in shown.items()}
    for place, (*values, is_final) in rows.items():
        assert passes(chosen, view, place), (statement, place)
        for name, value in zip([*metrics, *states], values, strict=True):
            if (place[0], *place[2:]) not in series[name]:  # REST leaves a series out of which no event counts
                assert not value, (statement, place, name, value)
                continue
            point = shown[name].pop(place)
            assert same(value, point.value), (statement, place, name, value, point)
            assert point.final in (None, is_final), (statement, place, name)
    for name, others in shown.items():
        left_out = {place: point for place, point in others.items() if passes(chosen, view, place)}
        assert not any(point.value for point in left_out.values()), (statement, name, left_out)


def passes(chosen: Filter, view: View, place: Place) -> bool:
    store, at, *dimensions = place
    when = date.fromisoformat(str(at)) if len(str(at)) == len("2026-03-26") else datetime.fromisoformat(str(at))
    return chosen.holds(str(store), when, dict(zip(view.dimensions, dimensions, strict=True)))


def refuse_differences(data: st.DataObject) -> None:
    """Rows of some tables of a view, over a history in which it counts much."""
    view = data.draw(st.sampled_from(registered_views()))
    trading = data.draw(tradings(view.source.topic))
    with AskingSql(trading.world()) as sql:
        for _ in range(QUERIES):
            refuse_difference(sql, view, data.draw(st.sampled_from(GRAINS)), data)


@FEWER
@given(data=st.data())
def test_a_row_has_the_values_of_its_point_in_rest_whatever_the_filters(data: st.DataObject) -> None:
    refuse_differences(data)


@pytest.mark.nightly
@MANY
@given(data=st.data())
def test_a_thousand_queries_have_the_values_of_rest(data: st.DataObject) -> None:
    refuse_differences(data)


def refuse_difference_of_metrics(sql: AskingSql, metrics: Sequence[str], data: st.DataObject) -> None:
    """Some metrics of the long table, for the stores and days that a drawn filter lets through."""
    chosen, listed = data.draw(filters("day")), ", ".join(f"'{metric}'" for metric in metrics)
    columns = "metric, store, day, value, unit, currency, final, publication, provisional"
    statement = data.draw(shapes("metrics", columns, f"metric in ({listed}) and {chosen.sql}"))
    found = {(metric, store, str(day)): rest for metric, store, day, *rest in sql.rows(statement)}
    stores, query = sql.rest.world.stores, {"grain": "day", "from": str(FIRST), "to": str(LAST)}
    body = sql.rest.body(f"/v1/metrics/{','.join(metrics)}", store=list(stores), from_=query.pop("from"), **query)

    for answer in body.get("answers", [body]):
        metric = registered_metrics()[answer["metric"]]
        for series in answer["series"]:
            store = stores[series["store"]]
            for point in series["points"]:
                if not chosen.holds(store.id, date.fromisoformat(point["date"]), {}):
                    continue
                row, shown = found.pop((metric.id, store.id, point["date"]), None), point["value"]
                if row is None:  # no event, so that REST has what adds up to nothing
                    assert not shown or is_sequential(metric), (statement, metric.id, point)
                    continue
                value, unit, code, final, publication, provisional = row
                assert (value is None) == (shown is None), (statement, metric.id, point, value)
                assert value is None or abs(value - Decimal(repr(shown))) <= Decimal("5e-19"), (statement, point, value)
                money = series.get("currency") or answer.get("currency")
                assert (unit, code) == (answer["unit"], money if metric.unit == "money" else None)
                assert (final, provisional) == (point["final"], not point["final"]), (statement, metric.id, point)
                assert publication == answer["as_of"]["publication"]
    assert not found, (statement, found)


def is_sequential(metric: Metric) -> bool:
    """Whether a day without events has a value by the windows before it."""
    return any(term.is_sequential for term in metric.terms.values())


@FEWER
@given(data=st.data())
def test_the_long_table_has_the_values_of_each_store_and_day(data: st.DataObject) -> None:
    view = data.draw(st.sampled_from(registered_views()))
    with AskingSql(data.draw(tradings(view.source.topic)).world()) as sql:
        table = sql.sessions.sources.relations(sql.rest.world.stores).tables["public.metrics"]
        assert isinstance(table, MetricsTable)
        of_view = [name for name, metric in table.metrics.items() if view.name in metric.views]
        some = st.lists(st.sampled_from(of_view or list(table.metrics)), min_size=1, max_size=4, unique=True)
        for _ in range(QUERIES):
            refuse_difference_of_metrics(sql, data.draw(some), data)


@FEWER
@given(chain=chains())
def test_sums_of_rows_are_the_totals_of_rest(chain: Chain) -> None:
    statement = "select currency, sum(net_sales), sum(receipts) from sales_15m group by 1 order by 1"
    metrics, query = "net_sales,total_transactions_count", {"by": "total,currency", "grain": "total"}
    with AskingSql(chain.world()) as sql:
        found = sql.rows(statement)
        body = sql.rest.request("GET", f"/v1/metrics/{metrics}", params={**query, "from": str(FIRST), "to": str(LAST)})
    net: dict[str, int] = {}
    for sale in chain.sales:
        code = chain.stores[sale.store].currency.code
        net[code] = net.get(code, 0) + sale.minor
    of_rest = [
        {series["dimensions"]["currency"]: series["points"][0]["value"] for series in answer["series"]}
        for answer in read(body.content)["answers"]
    ]

    assert [{code: Decimal(sum_) / 100 for code, sum_ in net.items()}] == [{code: sum_ for code, sum_, _ in found}]
    assert [{code: amount for code, amount, _ in found}, {code: count for code, _, count in found}] == of_rest
    assert sum(count for *_, count in found) == len(chain.sales)


def test_every_metric_that_a_view_alone_answers_is_a_column_of_its_tables() -> None:
    with AskingSql(Chain((), (), (), None).world()) as sql:
        tables = sql.sessions.sources.relations({}).tables
    named = {
        table.name: {each.name for each in table.columns} for table in tables.values() if isinstance(table, ViewTable)
    }

    assert {"net_sales", "avg_transaction_value", "receipts", "currency", "final", "provisional"} <= named["sales_day"]
    assert {"net_sales", "net_units", "sku", "currency"} <= named["sales_by_sku_hour"]
    assert "conversion_rate" not in named["traffic_day"]
    assert "count_drift" in named["traffic_day"]
    assert "count_drift" not in named["traffic_15m"]
