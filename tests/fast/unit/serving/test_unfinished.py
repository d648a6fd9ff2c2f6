"""A period that is not over is compared with as much of the earlier one."""

from datetime import datetime, timedelta

import pytest

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking, Body

NET = "/v1/metrics/net_sales"
SATURDAYS = ("2026-02-28", "2026-03-07")
TIMES = ("10:00", "14:10", "14:16", "18:00")


def world_of(*stores: Store) -> World:
    """Sales of 1.00 at every time of last Saturday, and this Saturday until 14:20, when it is asked."""
    world = World(*stores)
    requested_at = datetime.fromisoformat("2026-03-07T14:20:00+01:00")
    moments = [datetime.fromisoformat(f"{day}T{at}:00+01:00") for day in SATURDAYS for at in TIMES]
    for number, at in enumerate(at for at in moments if at < requested_at):
        world.receive(receipt(at.isoformat(), minor=100, number=number), at + timedelta(seconds=1))
        if at.day == 28 and at.hour == 18:
            world.rebuild("2026-03-06T00:00:00Z")
    world.pass_time(requested_at)
    return world


@pytest.fixture
def asking() -> Asking:
    return Asking(world_of())


def this_saturday(asking: Asking, **arguments: object) -> Body:
    return asking.body(NET, store="1", from_="2026-03-07", to="2026-03-08", compare="previous_week", **arguments)


@pytest.mark.parametrize("grain", ["day", "total", "week", "month"])
def test_both_saturdays_are_compared_until_a_quarter_past_two(asking: Asking, grain: str) -> None:
    body = this_saturday(asking, grain=grain)

    [series] = body["series"]
    [point] = series["points"]
    assert (point["value"], point["before"], point["change"]) == (2.0, 2.0, 0.0)
    assert (point["partial"], body["partial"], series["compared"]["partial"]) == (True, True, True)
    assert series["compared"]["until"] == "2026-03-07T13:15:00Z"
    assert [series["compared"][side]["hours"] for side in ("now", "before")] == [14.25, 14.25]


@pytest.mark.parametrize("by", ["store", "total"])
@pytest.mark.parametrize(("metric", "several"), [("net_sales", (0, 2, 4)), ("avg_transaction_value", (None, 1, 1))])
def test_what_has_not_begun_has_no_value_unless_an_event_lies_ahead(
    metric: str, by: str, several: tuple[float | None, ...]
) -> None:
    world = world_of()
    world.receive(receipt("2026-03-07T15:10:00+01:00", minor=100, number=99), "2026-03-07T14:20:00+01:00")
    asking = Asking(world)

    def values(end: str, grain: str) -> list[float | None]:
        body = asking.body(f"/v1/metrics/{metric}", from_="2026-03-07", to=end, grain=grain, by=by)
        return [point["value"] for point in body["series"][0]["points"]]

    nothing, two, four = several
    assert values("2026-03-08", "hour")[9:] == [nothing, 1, nothing, nothing, nothing, two, 1, *[None] * 8]
    assert values("2026-03-10", "day") == [four, None, None]


def test_hours_that_have_not_begun_are_compared_with_nothing_yet(asking: Asking) -> None:
    points = this_saturday(asking, grain="hour")["series"][0]["points"]

    assert [(points[hour]["value"], points[hour]["before"]) for hour in (10, 14, 18)] == [(1, 1), (1, 1), (None, None)]
    assert [points[hour].get("partial", False) for hour in (10, 14, 18)] == [False, True, True]
    assert "flags" not in points[18]


def test_a_week_to_date_is_compared_with_the_days_and_hours_that_it_has_had(asking: Asking) -> None:
    body = asking.body(NET, store="1", from_="2026-03-02", to="2026-03-09", grain="total", compare="previous_period")

    [series] = body["series"]
    assert [(point["value"], point["before"]) for point in series["points"]] == [(2.0, 2.0)]
    assert (series["compared"]["before"]["from"], series["compared"]["before"]["to"]) == ("2026-02-23", "2026-03-01")
    assert [series["compared"][side]["days"] for side in ("now", "before")] == [6, 6]


def test_a_finished_day_is_compared_as_a_whole(asking: Asking) -> None:
    body = asking.body(NET, store="1", from_="2026-02-28", to="2026-03-01", compare="previous_week")

    assert body["series"][0]["points"][0]["value"] == 4.0
    assert "partial" not in body


def test_without_a_comparison_nothing_that_happened_is_left_out(asking: Asking) -> None:
    body = asking.body(NET, store="1", from_="2026-03-07", to="2026-03-08")

    assert body["series"][0]["points"][0]["value"] == 3.0


def test_without_speed_both_sides_stop_at_the_cut() -> None:
    world = world_of()
    world.rebuild("2026-03-07T13:20:00Z")

    body = this_saturday(Asking(world), as_of=2)

    assert body["series"][0]["compared"]["until"] == "2026-03-07T13:15:00Z"
    assert body["series"][0]["points"][0]["before"] == 2.0


def test_a_period_that_has_not_begun_is_compared_with_nothing(asking: Asking) -> None:
    body = asking.body(NET, store="1", from_="2026-03-08", to="2026-03-09", compare="previous_week")

    [series] = body["series"]
    assert [(point["value"], point["before"], point["partial"]) for point in series["points"]] == [(None, None, True)]
    assert (series["compared"]["now"], series["compared"]["before"]) == (None, None)
    assert series["compared"]["until"] == "2026-03-07T13:15:00Z"


def test_open_hours_of_both_sides_are_those_that_have_been() -> None:
    store = Store(id="1", timezone="Europe/Bratislava", opening_hours={"sat": ("08:00-20:00",)})
    asking = Asking(world_of(store))

    [series] = this_saturday(asking)["series"]

    assert [series["compared"][side]["open_hours"] for side in ("now", "before")] == [6.25, 6.25]


def test_an_unfinished_night_is_compared_as_a_part_of_its_business_day() -> None:
    bar = Store(id="1", timezone="Europe/Bratislava", day_starts_at="04:00")
    world = World(bar)
    for number, at in enumerate(
        ("2026-02-28T01:00:00+01:00", "2026-02-28T03:00:00+01:00", "2026-03-07T01:00:00+01:00")
    ):
        world.receive(receipt(at, minor=100, number=number), datetime.fromisoformat(at) + timedelta(seconds=1))
        world.rebuild(datetime.fromisoformat(at) + timedelta(minutes=30))
    world.pass_time("2026-03-07T02:00:00+01:00")

    body = Asking(world).body(NET, store="1", from_="2026-03-06", to="2026-03-07", compare="previous_week")

    assert [(point["value"], point["before"]) for point in body["series"][0]["points"]] == [(1.0, 1.0)]
    assert body["series"][0]["compared"]["until"] == "2026-03-07T01:00:00Z"
