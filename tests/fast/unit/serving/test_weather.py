"""Weather beside the points: exact over the observations of each point, from both layers."""

import pytest

from master_dataset.registry.stores import Store
from master_dataset.sources.weather_observations import WEATHER_OBSERVATIONS
from serving_layer.errors import NotAvailableError
from serving_layer.query.context import context_names
from tests.support import World, receipt
from tests.support.sensors import observation
from tests.support.world_api import Asking, Body

NET = "/v1/metrics/net_sales"
BRATISLAVA = Store(id="1", timezone="Europe/Bratislava")
KATHMANDU = Store(id="2", timezone="Asia/Kathmandu")
SATURDAY = {"from_": "2026-03-07", "to": "2026-03-08"}


def observed(*values: bytes, at: str = "2026-03-07T20:00:00Z", cut: str | None = "2026-03-10T00:00:00Z") -> World:
    world = World(BRATISLAVA, KATHMANDU)
    for value in values:
        world.receive(value, at, WEATHER_OBSERVATIONS)
    if cut:
        world.rebuild(cut)
    return world


def weather(world: World, **arguments: object) -> Body:
    body = Asking(world).body(NET, **{**SATURDAY, "context": "weather", **arguments})
    return dict(body["context"]["weather"])


def test_a_day_has_the_exact_means_and_the_extremes_of_its_observations() -> None:
    world = observed(
        observation("2026-03-07T09:00:00Z", 7.4, rain_mm=0.2, wind_m_s=3.1, cloud_percent=100),
        observation("2026-03-07T09:15:00Z", -2.6, wind_m_s=1, cloud_percent=50),
        observation("2026-03-07T15:00:00Z", 4.3, rain_mm=1.1, wind_m_s=1),
    )

    points = weather(world)

    assert points["grain"] == "day"
    assert points["units"] == {"temperature": "C", "precipitation": "mm", "wind": "m/s", "cloud": "percent"}
    [row] = points["rows"]
    assert row == {
        "store": "1",
        "start": "2026-03-06T23:00:00Z",
        "temperature_avg": 9.1 / 3,
        "temperature_min": -2.6,
        "temperature_max": 7.4,
        "precipitation": 1.3,
        "wind_avg": 1.7,
        "cloud_avg": 75.0,
        "providers": ["s1"],
        "observations": 3,
        "final": True,
    }


def test_a_row_begins_where_its_point_does_and_nothing_is_said_of_points_without_observations() -> None:
    world = observed(observation("2026-03-07T09:15:00Z", 5), observation("2026-03-07T11:00:00Z", 6))

    body = Asking(world).body(NET, **SATURDAY, grain="hour", context="weather")
    rows = body["context"]["weather"]["rows"]

    assert [row["start"] for row in rows] == ["2026-03-07T09:00:00Z", "2026-03-07T11:00:00Z"]
    assert {row["start"] for row in rows} < {point["start"] for point in body["series"][0]["points"]}


def test_quarter_hours_have_the_weather_of_their_hour() -> None:
    world = observed(observation("2026-03-07T09:00:00Z", 5), observation("2026-03-07T09:45:00Z", 6))

    points = weather(world, grain="15m")

    assert points["grain"] == "hour"
    assert [(row["start"], row["temperature_avg"]) for row in points["rows"]] == [("2026-03-07T09:00:00Z", 5.5)]


def test_hours_of_the_week_are_labelled_as_the_points_are() -> None:
    points = weather(observed(observation("2026-03-07T09:00:00Z", 5)), grain="hour_of_week")

    assert [(row["weekday"], row["hour"]) for row in points["rows"]] == [(6, 10)]


def test_a_repeated_hour_has_its_weather_twice() -> None:
    values = observation("2026-10-25T00:00:00Z", 5), observation("2026-10-25T01:00:00Z", 3)
    world = observed(*values, at="2026-10-25T02:00:00Z", cut="2026-10-27T00:00:00Z")

    points = weather(world, grain="hour", from_="2026-10-25", to="2026-10-26")

    assert [row["start"] for row in points["rows"]] == ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"]


def test_the_rain_that_two_providers_saw_fell_once() -> None:
    world = observed(
        observation("2026-03-07T09:00:00Z", 5, rain_mm=2, provider="a"),
        observation("2026-03-07T09:00:00Z", 6, rain_mm=3, provider="b"),
        observation("2026-03-07T09:15:00Z", 7, rain_mm=1, provider="b"),
    )

    [row] = weather(world)["rows"]

    assert (row["precipitation"], row["temperature_avg"], row["providers"]) == (3.5, 6.0, ["a", "b"])


def test_what_speed_alone_has_seen_is_there_and_not_final() -> None:
    values = observation("2026-03-07T09:00:00Z", 5), observation("2026-03-07T10:00:00Z", 7)

    [live] = weather(observed(*values, cut=None))["rows"]
    [published] = weather(observed(*values))["rows"]

    assert (live["final"], published["final"]) == (False, True)
    assert live | {"final": True} == published


def test_a_day_that_is_not_over_at_the_cut_is_not_final() -> None:
    [row] = weather(observed(observation("2026-03-07T09:00:00Z", 5), cut="2026-03-08T00:00:00Z"))["rows"]
    [early] = weather(observed(observation("2026-03-07T09:00:00Z", 5), cut="2026-03-07T22:00:00Z"))["rows"]

    assert (row["final"], early["final"]) == (True, False)


def test_each_store_has_its_own_weather_on_its_own_day() -> None:
    world = observed(
        observation("2026-03-07T18:30:00Z", 5),
        observation("2026-03-07T18:30:00Z", 25, store="2"),
        observation("2026-03-07T18:00:00Z", 20, store="2"),
    )

    rows = weather(world)["rows"]

    assert [(row["store"], row["temperature_avg"]) for row in rows] == [("1", 5.0), ("2", 20.0)]


def test_weather_never_changes_a_point() -> None:
    world = observed(observation("2026-03-07T09:00:00Z", 5))
    world.receive(receipt("2026-03-07T09:00:00Z", minor=100), "2026-03-10T00:00:01Z")
    asking = Asking(world)

    beside = asking.body(NET, **SATURDAY, context="holidays,weather")
    alone = asking.body(NET, **SATURDAY)

    assert beside["series"] == alone["series"]
    assert list(beside["context"]) == ["holidays", "weather"]


def test_where_there_is_no_view_of_the_weather_it_is_refused() -> None:
    with pytest.raises(NotAvailableError):
        context_names("weather", {})
