"""What a statement sums and groups is what REST gives for a chain, its stores and its groups, to the digit."""

# ruff: noqa: S608 - statements of a test

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from serving_layer.files.tables import read
from serving_layer.query.resolve import adds_up
from serving_layer.sql.view_tables import GRAINS
from tests.support.chains import FIRST, LAST
from tests.support.examples import examples
from tests.support.sql_filters import DAYS, same
from tests.support.trading import Trading, tradings
from tests.support.world_sql import AskingSql
from views.core import View
from views.core.metric import Metric
from views.metrics import registered_metrics
from views.registry import registered_views, view_named

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
FEW = settings(max_examples=examples(20, least=3), deadline=None, phases=PHASES)
MANY = settings(max_examples=260, deadline=None, phases=PHASES)
QUERIES = 4
"""Of each history that is drawn."""
Key = tuple[object, ...]
SUMS: Mapping[str, Sequence[Metric]] = {
    view.name: [
        metric
        for metric in registered_metrics().values()
        if metric.unit in ("n", "money") and metric.views == (view.name,) and adds_up(metric, {view.name: view})
    ]
    for view in registered_views()
}
"""By view the metrics whose rows add up to the value of all events in them, and are exact, unlike hours."""
AS_THEN = """left join store_attributes {alias} on {alias}.store = v.store and {alias}.name = '{name}'
    and v.day >= coalesce({alias}.valid_from, v.day) and v.day < coalesce({alias}.valid_to, v.day + 1)"""
CURRENT = """left join (select store, value from store_attributes where name = '{name}' and valid_to is null) {alias}
    on {alias}.store = v.store"""

RATIOS: Mapping[str, tuple[str, str]] = {
    "avg_transaction_value": ("sales_day", "sum(net_sales) / nullif(sum(sale_tx), 0)"),
    "avg_basket_value": ("basket_sizes_day", "sum(basket_value) / nullif(sum(baskets), 0)"),
    "return_rate": ("sales_day", "100 * sum(returns_value) / nullif(sum(gross_sales), 0)"),
    "discount_share": ("discounts_day", "100 * sum(discounts) / nullif(sum(gross_sales) + sum(discounts), 0)"),
}
"""By metric the table whose rows it can be computed from, and how."""


@dataclass(frozen=True)
class Sums:
    """A sum of a metric, as it is written in SQL and as REST is asked for it.

    Attributes:
        metric: what is summed.
        table: of the view.
        over: `total`, `store`, or names of groups, separated by commas.
        attributes: for groups, as REST calls it.
        grain: of the points of REST: `hour`, `day`, `week`, `month` or `total`.
        split: dimensions.
        stores: those that are summed; empty: all.
        days: the first day, and the day after the last one.
        joins_stores: whether currencies come from the table `stores`.
    """

    metric: Metric
    table: str
    over: str
    attributes: str
    grain: str
    split: Sequence[str]
    stores: Sequence[str]
    days: tuple[date, date]
    joins_stores: bool

    @property
    def groups(self) -> Sequence[str]:
        return [] if self.over in ("total", "store") else self.over.split(",")

    def statement(self) -> str:
        joins = ["join stores s on s.store = v.store"] if self.joins_stores else []
        for number, name in enumerate(self.groups):
            join = AS_THEN if self.attributes == "as_then" else CURRENT
            joins.append(join.format(alias=f"g{number}", name=name))
        keys = [*self._time_keys(), *(["v.store"] if self.over == "store" else [])]
        keys += [f"g{number}.value" for number in range(len(self.groups))] + [f"v.{name}" for name in self.split]
        if self.metric.unit == "money":
            keys.append("s.currency" if self.joins_stores else "v.currency")
        places = ", ".join(str(number + 1) for number in range(len(keys)))
        grouped = f" group by {places}" if keys else ""
        columns = ", ".join([*keys, f"sum(v.{self.metric.id})"])
        return f"select {columns} from {self.table} v {' '.join(joins)} where {self._where()}{grouped}"

    def _time_keys(self) -> Iterator[str]:
        if self.grain == "hour":
            yield "date_trunc('hour', v.start)"
        elif self.grain == "day":
            yield "v.day"
        elif self.grain != "total":
            yield f"date_trunc('{self.grain}', v.day)::date"

    def _where(self) -> str:
        time, (first, last) = "day" if self.table.endswith("_day") else "start", self.days
        parts = [f"v.{time} >= '{first}'", f"v.{time} < '{last}'"]
        if self.stores:
            parts.append(f"v.store in ({', '.join(repr(store) for store in self.stores)})")
        return " and ".join(parts)

    def query(self) -> Mapping[str, Any]:
        first, last = (str(day) if self.table.endswith("_day") else f"{day}T00:00Z" for day in self.days)
        by = [self.over] if not self.groups else [f"group:{name}" for name in self.groups]
        query = {"by": [*by, *self.split], "grain": self.grain, "from": first, "to": last}
        query |= {"attributes": self.attributes} if self.groups else {}
        return query | ({"store": list(self.stores)} if self.stores else {})

    def found(self, rows: Sequence[tuple[Any, ...]]) -> dict[Key, object]:
        """The sums of SQL by their keys."""
        return {tuple(_text(each) for each in keys): value for *keys, value in rows}

    def shown(self, body: Mapping[str, Any]) -> dict[Key, object]:
        """The values of REST by the same keys."""
        values: dict[Key, object] = {}
        for series in body["series"]:
            of = [series["store"]] if self.over == "store" else list(series.get("group", {}).values())
            of += series["dimensions"].values()
            if self.metric.unit == "money":
                of.append(series.get("currency") or body["currency"])
            for point in series["points"]:
                time = [] if self.grain == "total" else [point["start"] if self.grain == "hour" else point["date"]]
                values[*time, *of] = point["value"]
        return values


def _text(key: object) -> object:
    return f"{key:%Y-%m-%dT%H:%M:%SZ}" if isinstance(key, datetime) else str(key) if isinstance(key, date) else key


@st.composite
def sums(draw: st.DrawFn, sql: AskingSql, view: View) -> Sums:
    stores = list(sql.rest.world.stores.values())
    table_grain = draw(st.sampled_from(GRAINS))
    metric = draw(st.sampled_from([each for each in SUMS[view.name] if not each.grains or table_grain in each.grains]))
    names = sorted({name for store in stores for name in store.group_names})
    groups = [*names, *([",".join(names)] if len(names) > 1 else [])] if table_grain == "day" else []
    over = draw(st.sampled_from(["total", "store", *groups]))
    grains = ["day", "week", "month", "total"] if table_grain == "day" else ["total"]
    grains += ["hour"] if table_grain != "day" and over == "store" else []
    dimensions = [name for name in view.dimensions if name != "currency"]
    first, last = sorted(draw(st.lists(st.sampled_from(DAYS), min_size=2, max_size=2, unique=True)))
    return Sums(
        metric,
        f"{view.name}_{table_grain}",
        over,
        draw(st.sampled_from(["as_then", "current"])),
        draw(st.sampled_from(grains)),
        draw(st.lists(st.sampled_from(dimensions), unique=True)) if dimensions else [],
        draw(st.lists(st.sampled_from([store.id for store in stores]), max_size=2, unique=True)),
        draw(st.sampled_from([(FIRST, LAST), (first, last)])),
        draw(st.booleans()),
    )


def refuse_differences(data: st.DataObject) -> None:
    """Sums of a view over a history in which it counts much."""
    view = view_named(data.draw(st.sampled_from([name for name, metrics in SUMS.items() if metrics])))
    with AskingSql(data.draw(tradings(view.source.topic, registers_sensors=False)).world()) as sql:
        for _ in range(QUERIES):
            asked = data.draw(sums(sql, view))
            found = asked.found(sql.rows(asked.statement()))
            response = sql.rest.request("GET", f"/v1/metrics/{asked.metric.id}", params=asked.query())
            assert response.status_code == 200, (asked, response.text)
            shown = asked.shown(read(response.content))

            for key, value in found.items():
                if value is None:  # nothing was summed
                    assert not shown.pop(key, None), (asked, key)
                else:
                    assert same(value, shown.pop(key)), (asked, key, value)
            assert not any(shown.values()), (asked, shown)


@FEW
@given(data=st.data())
def test_a_sum_over_rows_is_the_total_of_rest_whatever_it_is_grouped_by(data: st.DataObject) -> None:
    refuse_differences(data)


@pytest.mark.nightly
@MANY
@given(data=st.data())
def test_a_thousand_sums_are_the_totals_of_rest(data: st.DataObject) -> None:
    refuse_differences(data)


@FEW
@given(trading=tradings(), metric=st.sampled_from(list(RATIOS)), over=st.sampled_from(["total", "store"]))
def test_a_ratio_of_sums_has_the_value_of_rest_but_for_the_last_digit(trading: Trading, metric: str, over: str) -> None:
    table, ratio = RATIOS[metric]
    key = "'all'" if over == "total" else "store"
    query = {"by": f"{over},currency", "grain": "total", "from": str(FIRST), "to": str(LAST)}
    with AskingSql(trading.world()) as sql:
        found = {
            tuple(keys): value
            for *keys, value in sql.rows(f"select {key}, currency, {ratio} from {table} group by 1, 2")
        }
        body = read(sql.rest.request("GET", f"/v1/metrics/{metric}", params=query).content)

    shown = {
        (series.get("store", "all"), series["dimensions"]["currency"]): point["value"]
        for series in body["series"]
        for point in series["points"]
    }
    for place, value in found.items():
        expected = shown.pop(place)
        assert value == (None if expected is None else pytest.approx(float(expected), rel=1e-14, abs=0)), place
    assert not any(shown.values())
