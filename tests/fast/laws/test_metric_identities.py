"""Identities 3 to 7 of the metrics catalogue, asked of both layers over days of 23 and 24 hours."""

from datetime import timedelta
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.fast.laws.test_metrics import TOTALS
from tests.support import World, receipt
from tests.support.examples import examples
from tests.support.sensors import BEGIN, Drawn, record, source_of
from tests.support.world_api import Asking
from views.core.cut import floor_to
from views.registry import registered_views

SHOP = Store(id="1", timezone="Europe/Bratislava")
SPAN = {"store": "1", "from_": "2026-03-27", "to": "2026-03-31"}
"""29 March has 23 hours."""
EVENTS = st.lists(
    st.tuples(st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 5)), min_size=1, max_size=12, unique=True
)
HEARD = st.lists(
    st.tuples(st.integers(0, 150), st.integers(0, 4000), st.integers(0, 5)), min_size=1, max_size=20, unique=True
)
"""So close together that there are visits."""
CUTS = st.none() | st.integers(0, 4500)
OF_RECEIPTS = {view.name for view in registered_views() if view.source is POS_TRANSACTIONS}
FEW = settings(max_examples=examples(100), deadline=None)


def world_of(topic: str, events: list[Drawn], cut: int | None) -> World:
    """The events received in order, a second after they happened, and a publication at that minute."""
    world = World(SHOP)
    for drawn in sorted(events):
        world.receive(record(topic, drawn), BEGIN + timedelta(minutes=drawn[0], seconds=1), source_of(topic))
    world.pass_time("2026-03-31T00:00:00Z")
    if cut is not None:
        world.rebuild(floor_to(BEGIN + timedelta(minutes=cut), timedelta(minutes=5)))
    return world


def points(asking: Asking, metric: str, **more: object) -> list[dict[str, Any]]:
    body = asking.body(f"/v1/metrics/{metric}", **SPAN | more)
    return [point for series in body["series"] for point in series["points"]]


def total(asking: Asking, metric: str, grain: str) -> Fraction:
    return sum((Fraction(point["value"]) for point in points(asking, metric, grain=grain)), Fraction(0))


SENSED = [metric.id for metric in TOTALS if metric.unit == "n" and not set(metric.views) & {*OF_RECEIPTS, "weather"}]


@FEW
@given(metric=st.sampled_from(SENSED), events=EVENTS, cut=CUTS)
def test_4_parts_of_any_grain_add_up_to_the_total(metric: str, events: list[Drawn], cut: int | None) -> None:
    sources = {"traffic": "people_counts", "queue": "queue_events", "zone_traffic": "zone_presence"}
    [view] = next(each.views for each in TOTALS if each.id == metric)
    asking = Asking(world_of(sources.get(view, "wifi_sightings"), events, cut))
    grains = ["day", "week", "total"] if metric == "count_drift" else ["15m", "hour", "day", "hour_of_week", "total"]

    assert len({total(asking, metric, grain) for grain in grains}) == 1


def test_4_hours_present_are_a_quarter_of_the_windows_on_days_of_any_length() -> None:
    found = points(Asking(world_of("people_counts", [], None)), "productivity")

    assert sum(point["hours_present"] for point in found) == 4 * 24 - 1


@FEW
@given(events=HEARD, cut=CUTS)
def test_5_6_7_of_visits_hold_in_every_cell(events: list[Drawn], cut: int | None) -> None:
    asking = Asking(world_of("wifi_sightings", events, cut))
    cells = asking.body("/v1/views/wifi_visits/cells", **SPAN)["cells"]
    devices = points(asking, "unique_devices", grain="15m")
    visits = points(asking, "in_store_traffic", grain="15m")

    for of in (cell["merged"] for cell in cells):
        assert of["bounced"] <= of["in_store"] <= of["outside"]
        assert sum(of["stay"]["counts"]) == of["in_store"]
        if of["in_store"]:
            assert of["in_store"] * of["stay"]["min"] <= of["stay_ms"] <= of["in_store"] * of["stay"]["max"]
    assert all(one["value"] <= other["value"] for one, other in zip(devices, visits, strict=True))


@FEW
@given(events=EVENTS, cut=CUTS)
def test_11_shares_of_doors_add_up_to_100_wherever_somebody_came(events: list[Drawn], cut: int | None) -> None:
    asking = Asking(world_of("people_counts", events, cut))
    everybody = total(asking, "traffic_in", "total")
    shares = [point["value"] for point in points(asking, "entrance_share", by="line", grain="total")]

    assert [round(sum(shares), 9)] == [100] if everybody else set(shares) <= {None}


@FEW
@given(tills=st.lists(st.tuples(st.sampled_from("789"), st.integers(1, 9999)), min_size=1, max_size=8), cut=CUTS)
def test_3_tills_add_up_to_their_store(tills: list[tuple[str, int]], cut: int | None) -> None:
    world = World(SHOP)
    for number, (till, minor) in enumerate(tills):
        at = BEGIN + timedelta(minutes=number)
        world.receive(receipt(at.isoformat(), minor=minor, number=number, till=till), at)
    if cut is not None:
        world.rebuild(floor_to(BEGIN + timedelta(minutes=cut), timedelta(minutes=5)))
    asking = Asking(world)
    cells = asking.body("/v1/views/sales_by_till/cells", **SPAN)["cells"]
    shares = [point["value"] for point in points(asking, "till_share", by="till", grain="total")]

    assert sum(cell["merged"]["net_sales"] for cell in cells) == sum(minor for _, minor in tills)
    assert round(sum(shares), 9) == 100
