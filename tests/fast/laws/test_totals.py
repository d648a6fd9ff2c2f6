"""Totals over stores: the states of all stores merged, whatever their zones, currencies, days and layers.

The oracle knows nothing of cells, states or windows: it goes through the events that were drawn, and adds up.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import GroupVersion, Store
from serving_layer.compare.comparable_stores import SETTLES_IN
from tests.support.chains import FIRST, LAST, Chain, Count, Sale, chains
from tests.support.examples import examples
from tests.support.sensors import BEGIN
from tests.support.world_api import Asking
from views.core.cut import floor_to
from views.metrics import registered_metrics

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
FEW = settings(max_examples=examples(100), deadline=None, phases=PHASES)
SOME = settings(max_examples=examples(100), deadline=None, phases=PHASES)


class Sums(NamedTuple):
    """What a formula is made of. `m2`: of all stores that are in it."""

    net: int
    sale_tx: int
    receipts: int
    people: int
    m2: int


def total(chain: Chain, events: Sequence[Sale | Count], members: Sequence[int]) -> Sums:
    sales = [event for event in events if isinstance(event, Sale)]
    counts = [event for event in events if isinstance(event, Count)]
    return Sums(
        net=sum(sale.minor for sale in sales),
        sale_tx=sum(sale.minor > 0 for sale in sales),
        receipts=len(sales),
        people=sum(count.people for count in counts),
        m2=sum(int(chain.stores[place].floor_m2 or 0) for place in members),
    )


def ratio(one: float, other: float) -> float | None:
    return one / other if other else None


METRICS: Mapping[str, Callable[[Sums], Decimal | float | None]] = {
    "net_sales": lambda sums: Decimal(sums.net) / 100,
    "total_transactions_count": lambda sums: sums.receipts,
    "avg_transaction_value": lambda sums: ratio(sums.net, sums.sale_tx * 100),
    "sales_per_sq_m": lambda sums: ratio(sums.net, sums.m2 * 100) if sums.receipts else None,
    "traffic_in": lambda sums: sums.people,
    "conversion_rate": lambda sums: ratio(100 * sums.sale_tx, sums.people) if sums.sale_tx or sums.people else None,
}
OF_MONEY = ("net_sales", "avg_transaction_value", "sales_per_sq_m")
COUNTED = ("traffic_in", "conversion_rate")
LABELS: Mapping[str, Callable[[Chain, Sale | Count], tuple[object, ...]]] = {
    "hour": lambda chain, event: (chain.local(event).replace(tzinfo=None, minute=0), chain.local(event).fold),
    "day": lambda chain, event: (chain.day(event),),
    "week": lambda chain, event: (chain.day(event) - timedelta(days=chain.day(event).weekday()),),
    "month": lambda chain, event: (chain.day(event).replace(day=1),),
    "weekday": lambda chain, event: (chain.day(event).isoweekday(),),
    "hour_of_week": lambda chain, event: (chain.local(event).isoweekday(), chain.local(event).hour),
    "total": lambda _, __: (),
}
Groups = dict[str | None, list[int]]


def by_currency(chain: Chain, metric: str, places: Sequence[int]) -> Groups:
    """The stores whose sums make one number."""
    found: Groups = {}
    for place in places:
        found.setdefault(chain.stores[place].currency.code if metric in OF_MONEY else None, []).append(place)
    return found


def known(chain: Chain, metric: str) -> list[int]:
    """The stores that have the source of the metric: sensors are known by what they sent."""
    counting = {count.store for count in chain.counts}
    return [place for place in range(len(chain.stores)) if metric not in COUNTED or place in counting]


def expected(chain: Chain, metric: str, grain: str, places: Sequence[int]) -> list[tuple[tuple[object, ...], Any]]:
    """Every label of which anything is known, in order, with its value."""
    every: list[Sale | Count] = [*chain.sales, *chain.counts]
    events = [event for event in every if event.store in places]
    labelled: dict[Any, list[Sale | Count]] = {}
    for event in events:
        if isinstance(event, Count) == (metric == "traffic_in") or metric == "conversion_rate":
            labelled.setdefault(LABELS[grain](chain, event), []).append(event)
    return [(label, METRICS[metric](total(chain, of, places))) for label, of in sorted(labelled.items())]


def shown(series: Mapping[str, Any]) -> Iterator[tuple[tuple[object, ...] | None, Any]]:
    for point in series["points"]:
        label = (date.fromisoformat(point["date"]),) if "date" in point else None
        yield label, point["value"]


def same(found: object, wanted: object) -> bool:
    if isinstance(wanted, float) and isinstance(found, int | float):
        return abs(found - wanted) < 1e-9 * max(1, abs(wanted))
    return (None if found is None else Decimal(str(found))) == (None if wanted is None else Decimal(str(wanted)))


def refuse_difference(series: Mapping[str, Any], wanted: list[tuple[tuple[object, ...], Any]], grain: str) -> None:
    """Every label with events has its value, and every other one nothing."""
    points = list(shown(series))
    if grain in ("day", "week", "month"):
        by_label = dict(points)
        assert len(by_label) == len(points)
        for label, value in wanted:
            assert same(by_label.pop(label), value), (label, value, points)
        assert not any(by_label.values())
        return
    values = [value for _, value in points if value]
    assert len(values) == sum(bool(value) for _, value in wanted)
    for value, (label, exact) in zip(values, [each for each in wanted if each[1]], strict=True):
        assert same(value, exact), (label, value, exact)


@FEW
@given(chain=chains(), metric=st.sampled_from(list(METRICS)), grain=st.sampled_from(list(LABELS)))
def test_a_total_is_the_formula_over_the_sums_of_all_its_stores(chain: Chain, metric: str, grain: str) -> None:
    asking = Asking(chain.world())

    body = asking.body(f"/v1/metrics/{metric}", by="total", grain=grain, from_=str(FIRST), to=str(LAST))

    groups = by_currency(chain, metric, range(len(chain.stores)))
    assert len(body["series"]) == len(groups)
    for series in body["series"]:
        assert (series["group"], "store" in series) == ({}, False)
        code = body.get("currency") or series.get("currency")
        members = groups[code if metric in OF_MONEY else None]
        counted = [place for place in known(chain, metric) if place in members]
        assert series["stores"]["counted"] == len(counted)
        assert series["stores"]["missing"] == len(members) - len(counted)
        refuse_difference(series, expected(chain, metric, grain, counted), grain)


def group_of(store: Store, name: str, day: date, attributes: str) -> str | None:
    """The last version that had begun, or the last of all."""
    begun = [
        each for each in store.groups if attributes == "current" or each.valid_from is None or each.valid_from <= day
    ]
    return begun[-1].values.get(name) if begun else None


@FEW
@given(
    chain=chains(),
    metric=st.sampled_from(["net_sales", "total_transactions_count", "avg_transaction_value", "traffic_in"]),
    grain=st.sampled_from(list(LABELS)),
    names=st.sampled_from([("region",), ("format", "region")]),
    attributes=st.sampled_from(["as_then", "current"]),
)
def test_groups_add_up_what_their_stores_had_on_each_business_day(
    chain: Chain, metric: str, grain: str, names: tuple[str, ...], attributes: str
) -> None:
    known_names = {name for store in chain.stores for version in store.groups for name in version.values}
    assume(known_names.issuperset(names))
    asking = Asking(chain.world())
    by = ",".join(f"group:{name}" for name in names)
    query = {"by": by, "attributes": attributes, "grain": grain, "from_": str(FIRST), "to": str(LAST)}

    body = asking.body(f"/v1/metrics/{metric}", **query)

    def key(event: Sale | Count) -> tuple[object, ...]:
        store = chain.stores[event.store]
        groups = (group_of(store, name, chain.day(event), attributes) for name in names)
        return (store.currency.code if metric in OF_MONEY else None, *groups)

    events: list[Sale | Count] = [*chain.sales, *chain.counts]
    shown_keys = []
    for series in body["series"]:
        assert tuple(series["group"]) == names
        code = (body.get("currency") or series.get("currency")) if metric in OF_MONEY else None
        of = (code, *series["group"].values())
        shown_keys.append(of)
        here = [event for event in events if key(event) == of]
        sales = tuple(each for each in here if isinstance(each, Sale))
        only = chain._replace(sales=sales, counts=tuple(each for each in here if isinstance(each, Count)))
        refuse_difference(series, expected(only, metric, grain, range(len(chain.stores))), grain)
    assert len(set(shown_keys)) == len(shown_keys)
    assert {key(event) for event in events if isinstance(event, Count) == (metric == "traffic_in")} <= set(shown_keys)


@FEW
@given(chain=chains(), grain=st.sampled_from(["15m", "hour", "day", "total"]))
def test_a_total_is_what_its_stores_add_up_to(chain: Chain, grain: str) -> None:
    asking = Asking(chain.world())
    query = {"from_": str(FIRST), "to": str(LAST), "grain": grain}

    chained = asking.body("/v1/metrics/total_transactions_count", by="total", **query)
    alone = asking.body("/v1/metrics/total_transactions_count", **query)

    [series] = chained["series"]
    by_label: dict[str, int] = {}
    for point in (point for each in alone["series"] for point in each["points"]):
        label = point.get("date") or point["local"]
        by_label[label] = by_label.get(label, 0) + point["value"]
    assert sum(point["value"] for point in series["points"]) == sum(by_label.values())
    assert chained["as_of"] == alone["as_of"]
    if grain == "day":
        assert {point["date"]: point["value"] for point in series["points"]} == by_label
    starts = [point["start"] for point in series["points"]]
    if len({store.timezone for store in chain.stores}) == 1:
        assert starts == sorted(starts)
        assert len(set(starts)) == len(starts)


@FEW
@given(chain=chains())
def test_every_layer_split_gives_the_same_total(chain: Chain) -> None:
    query = {"by": "total", "from_": str(FIRST), "to": str(LAST)}

    split = Asking(chain.world()).body("/v1/metrics/net_sales", **query)
    whole = Asking(chain._replace(cut=None).world()).body("/v1/metrics/net_sales", **query)

    for one, other in zip(split["series"], whole["series"], strict=True):
        values = [[(point["date"], point["value"]) for point in each["points"]] for each in (one, other)]
        assert values[0] == values[1]


def test_the_oracle_counts_a_day_as_people_do() -> None:
    chain = Chain((Store(id="0", timezone="America/New_York", day_starts_at="04:00"),), (), (), None)
    late = Sale(0, int((datetime(2026, 3, 28, 7, 30, tzinfo=UTC) - BEGIN).total_seconds() // 60), 1, 0)

    assert chain.local(late).isoformat() == "2026-03-28T03:30:00-04:00"
    assert chain.day(late) == date(2026, 3, 27)


@FEW
@given(
    chain=chains(),
    by=st.sampled_from(["store", "group:region", "group:region,currency"]),
    top=st.integers(1, 3),
    sort=st.sampled_from(["value", "-value", "name"]),
)
def test_the_top_and_the_rest_are_all_there_is(chain: Chain, by: str, top: int, sort: str) -> None:
    assume("region" not in by or any("region" in version.values for store in chain.stores for version in store.groups))
    asking = Asking(chain.world())
    query = {"by": by, "from_": str(FIRST), "to": str(LAST), "grain": "total", "share": "true"}
    path = "/v1/metrics/total_transactions_count"

    every = asking.body(path, **query, sort=sort)
    cut = asking.body(path, **query, sort=sort, top=top)

    def values(body: Mapping[str, Any]) -> list[int]:
        return [series["points"][0]["value"] for series in body["series"]]

    shares = [series["points"][0]["share"] for series in cut["series"]]
    assert sum(values(cut)) == sum(values(every)) == len(chain.sales)
    assert not chain.sales or abs(sum(shares) - 100) < 1e-9  # a count is one whole over all currencies
    others = [series for series in cut["series"] if series.get("other")]
    if "currency" not in by:
        assert values(every) == (sorted(values(every), reverse=sort == "-value") if sort != "name" else values(every))
        assert values(cut)[:top] == values(every)[:top]
        assert len(others) == (len(every["series"]) > top)


@FEW
@given(
    chain=chains(),
    asked=st.sampled_from([("previous_week", FIRST), ("previous_year", FIRST)])
    | st.just(("previous_period", date(2026, 3, 30))),  # with days of which Europe skipped an hour
    grain=st.just("hour") | st.sampled_from(["day", "week", "weekday", "total"]),
)
def test_a_total_is_compared_where_each_store_is(chain: Chain, asked: tuple[str, date], grain: str) -> None:
    compare, first = asked
    asking = Asking(chain.world())
    query = {"from_": str(first), "to": str(LAST), "grain": grain, "compare": compare}

    chained = asking.body("/v1/metrics/total_transactions_count", by="total", **query)
    alone = asking.body("/v1/metrics/total_transactions_count", **query)

    parts: dict[Any, list[Any]] = {}
    for point in (point for each in alone["series"] for point in each["points"]):
        parts.setdefault(label_of(point, grain), []).append(point)
    [series] = chained["series"]
    for point in series["points"]:
        of, flags = parts[label_of(point, grain)], point.get("flags", ())
        known = [each["before"] for each in of if each["before"] is not None]
        assert point["before"] == (sum(known) if known else None)
        differs = len(known) not in {0, sum(each["value"] is not None for each in of)}
        assert ("stores_differ" in flags) == differs, (point, of)
        if differs:
            assert point["change"] is None


def label_of(point: Mapping[str, Any], grain: str = "15m") -> object:
    """What points of several stores have in common: a weekday, a date or an hour. No clock goes back in these days.

    The first hour of a store whose business day begins within it is part of the same hour of other stores.
    """
    if "hour" in point:
        return point["weekday"], point["hour"]
    is_hour = grain == "hour"
    return (
        point.get("weekday")
        or point.get("date")
        or point["local"][: len("2026-03-29T12" if is_hour else "2026-03-29T12:15")]
    )


def exact(asking: Asking, metric: str, **query: object) -> Any:
    """An answer whose amounts are decimals."""
    response = asking.response(f"/v1/metrics/{metric}", **query)  # type: ignore[arg-type]
    assert response.status_code == 200, response.text
    return json.loads(response.text, parse_float=Decimal)


class Part(NamedTuple):
    """A series of an answer: its currency, None where no money is added, and its points by label."""

    currency: str | None
    points: Mapping[object, Mapping[str, Any]]


def parts(body: Mapping[str, Any]) -> list[Part]:
    found = []
    for series in body["series"]:
        points = {label_of(point, body["grain"]): point for point in series["points"]}
        assert len(points) == len(series["points"])
        found.append(Part(body.get("currency") or series.get("currency"), points))
    return found


def beside(total: Part, stores: Sequence[Part], label: object) -> list[Mapping[str, Any]]:
    """The points of stores that a point of a total is made of."""
    return [each.points[label] for each in stores if each.currency == total.currency and label in each.points]


def added(values: Sequence[Any]) -> object:
    """The sum of what is known; None of nothing."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


EVERY_GRAIN = ("15m", *LABELS)
NOT_ADDED = {"count_drift", "occupancy", "occupancy_max"}
"""A distance, and what depends on the order of windows."""
ADDED = [
    metric.id
    for metric in registered_metrics().values()
    if metric.formula.is_sum and metric.id not in NOT_ADDED and {"sales", "sales_by_sku", "traffic"} & {*metric.views}
]


LATE_DAY = Store(id="1", timezone="Europe/Bratislava", day_starts_at="04:00")
ONE_COUNTER = Chain((Store(id="0", timezone="Europe/Bratislava"), LATE_DAY), (), (Count(0, 0, 1),), None)
"""Four hours are those of a store alone of which nothing is known."""


@SOME
@given(chain=chains(), metric=st.sampled_from(ADDED), grain=st.sampled_from(EVERY_GRAIN))
@example(chain=ONE_COUNTER, metric="group_traffic_in", grain="15m")
def test_a_sum_of_a_total_is_the_sum_of_those_of_its_stores_at_every_label(
    chain: Chain, metric: str, grain: str
) -> None:
    asking = Asking(chain.world())
    query = {"from_": str(FIRST), "to": str(LAST), "grain": grain}

    totals = parts(exact(asking, metric, by="total", **query))
    stores = parts(exact(asking, metric, **query))

    assert {each.currency for each in totals} == {each.currency for each in stores}
    for total in totals:
        assert set(total.points) == {
            label for each in stores if each.currency == total.currency for label in each.points
        }
        for label, point in total.points.items():
            assert point["value"] == added([each["value"] for each in beside(total, stores, label)]), (label, point)


@SOME
@given(
    chain=chains(),
    metric=st.sampled_from(["total_transactions_count", "net_sales", "avg_transaction_value", "traffic_in"]),
    grain=st.sampled_from(EVERY_GRAIN),
)
def test_a_point_of_a_total_is_final_exactly_when_it_is_final_in_all_its_stores(
    chain: Chain, metric: str, grain: str
) -> None:
    """Also in those that are missing: what they may still send would count."""
    asking = Asking(chain.world())
    query = {"from_": str(FIRST), "to": str(LAST), "grain": grain}

    totals, stores = (parts(exact(asking, metric, **query, **by)) for by in ({"by": "total"}, {}))

    for total in totals:
        for label, point in total.points.items():
            assert point["final"] == all(each["final"] for each in beside(total, stores, label)), (label, point)


OPENED = st.sampled_from([None, *(FIRST - SETTLES_IN + timedelta(days=days) for days in (-400, -1, 0, 1, 300))])


@SOME
@given(
    chain=chains(),
    opened=st.lists(OPENED, min_size=4, max_size=4),
    settled=st.lists(st.sampled_from([None, None, FIRST, FIRST + timedelta(days=1)]), min_size=4, max_size=4),
    metric=st.sampled_from(list(METRICS)),
    grain=st.sampled_from(list(LABELS)),
)
def test_a_total_of_comparable_stores_is_that_of_the_stores_that_are_not_left_out(
    chain: Chain, opened: list[date | None], settled: list[date | None], metric: str, grain: str
) -> None:
    terms = list(zip(chain.stores, opened, settled, strict=False))
    stores = tuple(replace(store, open_since=since, comp_start_date=comp) for store, since, comp in terms)
    chain = chain._replace(stores=stores)
    begins = [comp or (since + SETTLES_IN if since else None) for _, since, comp in terms]
    comparable = [place for place, begin in enumerate(begins) if begin and begin <= FIRST]
    query = {"by": "total", "grain": grain, "from_": str(FIRST), "to": str(LAST), "comp": "true"}

    body = Asking(chain.world()).body(f"/v1/metrics/{metric}", **query)

    assert {each["store"]: each["reason"] for each in body["left_out"]} == {
        str(place): "not_comparable_yet" if begin else "open_since_unknown"
        for place, begin in enumerate(begins)
        if place not in comparable
    }
    groups = by_currency(chain, metric, comparable)
    shown_groups = [body.get("currency") or series.get("currency") for series in body["series"]]
    assert [code for code in shown_groups if code in groups] == sorted(groups, key=str)
    for code, series in zip(shown_groups, body["series"], strict=True):
        counted = [place for place in known(chain, metric) if place in groups.get(code, [])]
        assert series["stores"]["counted"] == len(counted)
        refuse_difference(series, expected(chain, metric, grain, counted), grain)


WEEK = timedelta(days=7)


@SOME
@given(
    chain=chains(),
    later=st.lists(st.integers(0, 11), max_size=12),
    cut=st.integers(0, 4500),
    metric=st.sampled_from(["net_sales", "total_transactions_count", "sku_units"]),
    grain=st.sampled_from(["hour", "day", "week", "weekday", "total"]),
)
def test_totals_are_compared_with_the_sum_of_what_their_stores_are_compared_with(
    chain: Chain, later: list[int], cut: int, metric: str, grain: str
) -> None:
    """Some sales are made again a week later, so that both weeks have sales."""
    repeated = [chain.sales[number % len(chain.sales)] for number in later if chain.sales]
    again = tuple(sale._replace(minute=sale.minute + int(WEEK.total_seconds()) // 60) for sale in repeated)
    world = chain._replace(sales=chain.sales + again, cut=None).world()
    world.rebuild(floor_to(BEGIN + WEEK + timedelta(minutes=cut), timedelta(minutes=5)))
    world.pass_time("2026-04-09T12:00:00Z")
    asking = Asking(world)
    query = {"from_": str(FIRST + WEEK), "to": str(LAST + WEEK), "grain": grain, "compare": "previous_week"}

    totals, stores = (parts(exact(asking, metric, **query, **by)) for by in ({"by": "total"}, {}))

    for total in totals:
        for label, point in total.points.items():
            of = beside(total, stores, label)
            assert point["value"] == added([each["value"] for each in of])
            assert point["before"] == added([each["before"] for each in of])
            if "stores_differ" in point.get("flags", ()) or not point["before"]:
                assert point["change"] is None
            else:
                change = 100 * (Decimal(point["value"]) - point["before"]) / abs(Decimal(point["before"]))
                assert same(float(point["change"]), float(change)), (label, point)


TERMS = st.tuples(st.sampled_from(["East", "West", None]), OPENED)
"""The region of a store, and since when it is open."""
ASKED = st.fixed_dictionaries(
    {"grain": st.sampled_from(EVERY_GRAIN)},
    optional={"compare": st.sampled_from(["previous_week", "previous_period"]), "comp": st.just("true")},
)


@SOME
@given(
    chain=chains(),
    terms=st.lists(TERMS, min_size=4, max_size=4),
    metric=st.sampled_from([*METRICS, "sku_units", "group_traffic_in"]),
    asked=ASKED,
)
def test_a_group_that_never_changes_answers_what_a_total_over_its_stores_does(
    chain: Chain, terms: list[tuple[str | None, date | None]], metric: str, asked: dict[str, str]
) -> None:
    """Values, coverage, flags, comparisons, what is final, and how many stores are counted, missing or left out."""
    regions = [region for region, _ in terms[: len(chain.stores)]]
    assume(any(regions))
    stores = tuple(
        replace(store, open_since=since, groups=(GroupVersion(None, {"region": region} if region else {}),))
        for store, (region, since) in zip(chain.stores, terms, strict=False)
    )
    asking = Asking(chain._replace(stores=stores).world())
    query = {**asked, "from_": str(FIRST), "to": str(LAST)}

    grouped = asking.body(f"/v1/metrics/{metric}", by="group:region", **query)

    left_out = []
    for region in set(regions):
        members = [store.id for store, of in zip(stores, regions, strict=True) if of == region]
        whole = asking.body(f"/v1/metrics/{metric}", by="total", store=",".join(members), **query)
        left_out += whole.get("left_out", [])
        found = [each for each in grouped["series"] if each["group"]["region"] == region]
        codes = [body.get("currency") for body in (grouped, whole)]
        of_region, of_total = (
            {each.get("currency", code): (each["stores"], each["points"]) for each in series}
            for code, series in zip(codes, (found, whole["series"]), strict=True)
        )
        assert of_region == of_total, region
    assert sorted(map(str, left_out)) == sorted(map(str, grouped.get("left_out", [])))
