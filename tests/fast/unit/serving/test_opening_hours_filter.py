"""`hours=open` counts only what was sold while the store was open; by default no receipt vanishes from a sum."""

from datetime import date

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking, Body

NET = "/v1/metrics/net_sales"
BAR = Store(
    id="1",
    timezone="Europe/Bratislava",
    day_starts_at="04:00",
    closed_on=(date(2026, 3, 13),),
    opening_hours={"fri": ("18:00-02:00",)},
)
SOLD = (
    "2026-03-06T17:59:00+01:00",
    "2026-03-06T18:00:00+01:00",
    "2026-03-07T01:59:00+01:00",
    "2026-03-07T02:00:00+01:00",
    "2026-03-07T05:00:00+01:00",
    "2026-03-13T20:00:00+01:00",
)


def body_of(store: Store = BAR, **arguments: object) -> Body:
    world = World(store)
    for number, at in enumerate(SOLD):
        world.receive(receipt(at, minor=100, number=number), at)
    world.rebuild("2026-03-15T00:00:00Z")
    question = {"from_": "2026-03-06", "to": "2026-03-08"} | arguments
    return Asking(world).body(NET, store="1", **question)


def test_the_whole_night_is_friday_and_what_was_sold_after_closing_counts_by_default() -> None:
    body = body_of()

    assert [point["value"] for point in body["series"][0]["points"]] == [4.0, 1.0]


def test_on_request_only_sales_inside_the_opening_hours_count() -> None:
    body = body_of(hours="open")

    assert [point["value"] for point in body["series"][0]["points"]] == [2.0, 0]
    assert body["hours"] == "open"


def test_a_closed_friday_has_no_open_hours_to_compare() -> None:
    body = body_of(hours="open", compare="previous_week", from_="2026-03-13", to="2026-03-14")

    [series] = body["series"]
    assert [(point["value"], point["before"], point["change"]) for point in series["points"]] == [(0, 2.0, -100.0)]
    assert [series["compared"][side]["open_hours"] for side in ("now", "before")] == [0, 8]


def test_a_store_that_never_said_when_it_is_open_has_no_value_and_says_why() -> None:
    body = body_of(Store(id="1", timezone="Europe/Bratislava"), hours="open")

    assert [(point["value"], point["flags"]) for point in body["series"][0]["points"]] == [
        (None, ["no_opening_hours"])
    ] * 2


def test_days_begin_where_the_store_says_in_a_requested_time_zone_too() -> None:
    body = body_of(timezone="UTC")

    assert [point["start"] for point in body["series"][0]["points"]] == ["2026-03-06T04:00:00Z", "2026-03-07T04:00:00Z"]
