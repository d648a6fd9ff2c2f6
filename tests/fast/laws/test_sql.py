"""What SQL answers is what REST answers, to the digit, and filters decide how much is read and never what is found."""

# ruff: noqa: S608, ISC004 - statements of a test

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from serving_layer.files.tables import read
from serving_layer.sql.view_tables import ViewTable
from tests.support.chains import FIRST, LAST, Chain, chains
from tests.support.world_sql import AskingSql
from views.registry import view_named

FEW = settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
MANY = settings(max_examples=260, deadline=None, phases=[Phase.explicit, Phase.generate])
QUERIES = 4
"""Of each history that is drawn."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sales": (
        "net_sales",
        "gross_sales",
        "avg_transaction_value",
        "sales_per_sq_m",
        "total_transactions_count",
        "return_rate",
    ),
    "traffic": ("traffic_in", "avg_group_size"),
}
DAYS = [FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1)]


class Filter(NamedTuple):
    """A filter of SQL and what it means. `holds`: of the id of a store and the day or instant of a row."""

    sql: str
    stores: frozenset[str] | None
    first: date | None
    last: date | None

    def holds(self, store: str, at: date | datetime) -> bool:
        if self.stores is not None and store not in self.stores:
            return False
        lower = self.first is None or at >= _like(self.first, at)
        return lower and (self.last is None or at < _like(self.last, at))


def _like(day: date, at: date | datetime) -> date | datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if isinstance(at, datetime) else day


@st.composite
def filters(draw: st.DrawFn, time: str) -> Filter:
    """Stores and days, as people and BI tools write them. `last` is exclusive."""
    parts, stores, first, last = ["true"], None, None, None
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(["0", "1", "2", "9"]), min_size=1, max_size=3))
        stores, listed = frozenset(chosen), ", ".join(f"'{each}'" for each in chosen)
        one = " or ".join(f"store = '{each}'" for each in chosen)
        parts.append(draw(st.sampled_from([f"store in ({listed})", f"store = any(array[{listed}])", f"({one})"])))
    if draw(st.booleans()):
        first = draw(st.sampled_from(DAYS))
        back = (date(2026, 4, 2) - first).days
        of_now = f"current_date - interval '{back} days'" if time == "day" else f"date '{first}'::timestamptz"
        written = [
            f"{time} >= '{first}'",
            f"{time} >= date '{first}'",
            f"not {time} < '{first}'",
            f"{time} >= {of_now}",
        ]
        parts.append(draw(st.sampled_from([*written, f"'{first}' <= {time}"])))
    if draw(st.booleans()):
        last = draw(st.sampled_from(DAYS))
        written = [f"{time} < '{last}'", f"date '{last}' > {time}", f"{time} < to_date('{last}', 'YYYY-MM-DD')"]
        if time == "day":
            written.append(f"{time} <= date '{last}' - 1")
        parts.append(draw(st.sampled_from(written)))
    return Filter(" and ".join(parts), stores, first, last)


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


def rest_values(sql: AskingSql, chain: Chain, metric: str, view: str, grain: str) -> dict[tuple[Any, ...], Any]:
    """By store, label and dimensions the value of every point that REST gives."""
    dimensions = list(view_named(view).dimensions)
    query: dict[str, Any] = {"from": str(FIRST), "to": str(LAST), "grain": grain, "by": ",".join(dimensions)}
    query["store"] = [store.id for store in chain.stores]
    body = read(sql.rest.request("GET", f"/v1/metrics/{metric}", params=query).content)
    return {
        (series["store"], point["date"] if grain == "day" else point["start"], *series["dimensions"].values()): point
        for series in body["series"]
        for point in series["points"]
    }


def refuse_difference(sql: AskingSql, chain: Chain, view: str, grain: str, data: st.DataObject) -> None:
    table, time = f"{view}_{grain}", "day" if grain == "day" else "start"
    dimensions = list(view_named(view).dimensions)
    metric = data.draw(st.sampled_from(COLUMNS[view]))
    chosen, columns = data.draw(filters(time)), ["store", time, *dimensions, metric, "final"]
    statement = data.draw(shapes(table, ", ".join(columns), chosen.sql))

    found = {
        (row[0], str(row[1]) if grain == "day" else f"{row[1]:%Y-%m-%dT%H:%M:%SZ}", *row[2:-2]): row[-2:]
        for row in sql.rows(statement)
    }

    points = rest_values(sql, chain, metric, view, grain)
    for place, (value, is_final) in found.items():
        point = points.pop(place)
        assert same(value, point["value"]), (statement, place, value, point)
        assert is_final == point["final"], (statement, place)
        assert chosen.holds(place[0], _at(place[1])), (statement, place)
    left_out = {place: point for place, point in points.items() if chosen.holds(place[0], _at(place[1]))}
    assert not any(point["value"] for point in left_out.values()), (statement, left_out)


def _at(label: str) -> date | datetime:
    return date.fromisoformat(label) if len(label) == len("2026-03-26") else datetime.fromisoformat(label)


def same(value: object, shown: object) -> bool:
    """Whether a value of SQL is what REST wrote: a float has the digits of its double."""
    if value is None or shown is None:
        return value is shown
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)  # type: ignore[arg-type]
    return exact == Decimal(shown)  # type: ignore[arg-type]


def refuse_differences(chain: Chain, data: st.DataObject) -> None:
    with AskingSql(chain.world()) as sql:
        for _ in range(QUERIES):
            view, grain = (
                data.draw(st.sampled_from(["sales", "traffic"])),
                data.draw(st.sampled_from(["15m", "hour", "day"])),
            )
            refuse_difference(sql, chain, view, grain, data)


@FEW
@given(chain=chains(), data=st.data())
def test_a_row_has_the_value_of_its_point_in_rest_whatever_the_filters(chain: Chain, data: st.DataObject) -> None:
    refuse_differences(chain, data)


@pytest.mark.nightly
@MANY
@given(chain=chains(), data=st.data())
def test_a_thousand_queries_have_the_values_of_rest(chain: Chain, data: st.DataObject) -> None:
    refuse_differences(chain, data)


@FEW
@given(chain=chains(), metric=st.sampled_from(["net_sales", "conversion_rate", "occupancy", "avg_transaction_value"]))
def test_the_long_table_has_the_values_of_each_store_and_day(chain: Chain, metric: str) -> None:
    with AskingSql(chain.world()) as sql:
        found = {
            (store, str(day)): (value, final)
            for store, day, value, final in sql.rows(
                "select store, day, value, final from metrics where metric = $1", metric
            )
        }
        query = {"from": str(FIRST), "to": str(LAST), "store": [store.id for store in chain.stores]}
        bodies = [
            read(sql.rest.request("GET", f"/v1/metrics/{metric}", params=query | {"store": id_}).content)
            for id_ in query["store"]
        ]
    points = {
        (series["store"], point["date"]): point
        for body in bodies
        for series in body["series"]
        for point in series["points"]
    }
    for place, (value, is_final) in found.items():
        point = points.pop(place)
        shown = point["value"]
        assert (value is None) == (shown is None)
        assert value is None or abs(value - Decimal(shown)) < Decimal("1e-17"), (place, value, shown)
        assert is_final == point["final"]
    assert metric == "occupancy" or not any(point["value"] for point in points.values())


@FEW
@given(chain=chains())
def test_sums_of_rows_are_the_totals_of_rest(chain: Chain) -> None:
    statement = "select currency, sum(net_sales), sum(receipts) from sales_15m group by 1 order by 1"
    with AskingSql(chain.world()) as sql:
        found = sql.rows(statement)
    net: dict[str, int] = {}
    for sale in chain.sales:
        code = chain.stores[sale.store].currency.code
        net[code] = net.get(code, 0) + sale.minor

    assert [(code, amount) for code, amount, _ in found] == sorted(
        (code, Decimal(sum_) / 100) for code, sum_ in net.items()
    )
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
