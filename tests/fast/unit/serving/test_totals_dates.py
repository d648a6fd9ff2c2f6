"""Which dates totals are of, and are compared with, where the days and weeks of stores differ."""

import asyncio
import zoneinfo

from master_dataset.registry.stores import Store
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.resolve import MetricRequest, resolve_all
from tests.fast.unit.serving.test_totals import sale
from tests.support import World, receipt
from tests.support.world_api import Asking
from views.metrics import registered_metrics
from views.registry import registered_views


def test_weeks_that_begin_on_different_days_stay_apart_where_no_two_stores_are_added_up() -> None:
    world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", week_starts_on="sun"))
    for number, store in enumerate(world.stores):
        line = {"title": "milk", "sku": "milk", "price": 1, "amount": 1}
        world.receive(receipt("2026-03-18T12:00:00Z", [line], store=store, number=number), "2026-03-18T12:00:00Z")
    world.rebuild("2026-03-30T00:00:00Z")
    query = {"from_": "2026-03-16", "to": "2026-03-22", "grain": "week", "by": "store,sku", "top": 5}

    body = Asking(world).body("/v1/metrics/sku_net_sales", **query)

    dates = [[point["date"] for point in series["points"]] for series in body["series"]]
    assert dates == [["2026-03-16"], ["2026-03-15"]]


def test_stores_that_are_added_up_are_compared_with_the_same_dates_over_a_change_of_clocks() -> None:
    """In Bratislava the clock shows 25 hours of this range, so it needs two days before; in Tokyo one would do."""
    world = World(Store(id="1", timezone="Europe/Bratislava"), Store(id="2", timezone="Asia/Tokyo"))
    said = {"from_": "2026-03-28T12:00:00Z", "to": "2026-03-29T12:00:00Z", "grain": "total", "by": "total"}
    for number, day in enumerate((26, 27, 28)):
        for store in world.stores:
            at = f"2026-03-{day}T13:00:00Z"
            world.receive(receipt(at, minor=10**number, store=store, number=number), at)
    world.rebuild("2026-04-02T00:00:00Z")

    [series] = Asking(world).body("/v1/metrics/net_sales", **said, compare="previous_period")["series"]

    assert series["points"][0]["before"] == 0.02


def test_the_points_of_stores_whose_days_are_alike_are_found_once_for_all_metrics() -> None:
    zones = sorted(zone for zone in zoneinfo.available_timezones() if zone.startswith("America/"))[:40]
    stores = [Store(id=str(number), timezone=zones[number % 40]) for number in range(120)]
    catalogue = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
    said = MetricRequest("net_sales", (), "2026-03-01", "2026-03-05", grain="hour", by=("total",))

    queries = asyncio.run(resolve_all([said, said], stores, catalogue))

    ranges = [of.range for query in queries for of in query.stores]
    assert len({id(each) for each in ranges}) == len({id(each.timeline) for each in ranges}) == 40
    assert all(of.timeline is of.range.timeline for query in queries for of in query.stores)


def test_an_hour_is_called_by_its_begin_although_the_first_store_begins_its_day_within_it() -> None:
    late, whole = Store(id="1", timezone="UTC", day_starts_at="06:30"), Store(id="2", timezone="UTC")
    world = World(late, whole)
    for number, (store, minute) in enumerate((("1", 45), ("2", 5))):
        sale(world, store, f"2026-03-27T06:{minute:02}:00Z", 100, number)

    asked = {"from_": "2026-03-27", "to": "2026-03-28", "grain": "hour", "by": "total"}
    body = Asking(world).body("/v1/metrics/total_transactions_count", **asked)

    points = [(each["local"], each["value"]) for each in body["series"][0]["points"] if each["value"]]
    assert points == [("2026-03-27T06:00:00", 2)]
