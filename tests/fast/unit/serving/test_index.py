"""An index as an answer: over both layers, with the metric's own values, and typed where there is none."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from master_dataset.registry.stores import Store, currency
from master_dataset.sources.weather_observations import WEATHER_OBSERVATIONS
from tests.support import World, receipt
from tests.support.sensors import observation
from tests.support.world_api import Asking, Body

INDEX = "/v1/index/net_sales"
ZONE = ZoneInfo("Europe/Bratislava")
SHOP = Store(id="1", timezone="Europe/Bratislava", country="SK")
FIRST = datetime(2026, 1, 7, 10, tzinfo=ZONE)
"""A Wednesday after the holidays of the new year."""
DAYS = 70
END = FIRST + timedelta(days=DAYS)
RAIN_TAKES = 0.75


def rained(number: int) -> bool:
    return number % 3 == 0


def sold(number: int, *, dry: bool = False) -> int:
    """Cents of a day: the later in the week, the more, and a quarter less in rain."""
    usual = 10_000 * (FIRST + timedelta(days=number)).isoweekday()
    return round(usual * RAIN_TAKES) if rained(number) and not dry else usual


def world_of(days: int = DAYS, *, store: Store = SHOP, skies: bool = True) -> World:
    """A shop that sells at ten every day."""
    world = World(store)
    for number in range(days):
        at = (FIRST + timedelta(days=number)).astimezone(UTC)
        text, received = at.isoformat(), at + timedelta(seconds=1)
        world.receive(receipt(text, minor=sold(number), number=number, store=store.id), received)
        if skies:
            rain = 4 if rained(number) else 0
            world.receive(observation(text, 5, rain_mm=rain, store=store.id), received, WEATHER_OBSERVATIONS)
    return world


@cache
def published() -> Asking:
    """Everything is published a day after the last sale."""
    world = world_of()
    world.rebuild("2026-03-19T00:00:00Z")
    return Asking(world)


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).date().isoformat()


def body_of(asking: Asking, first: int, last: int, **arguments: object) -> Body:
    return asking.body(INDEX, store="1", from_=day(first), to=day(last), history_weeks=8, **arguments)


def points(body: Body) -> list[dict[str, Any]]:
    [series] = body["series"]
    return list(series["points"])


def test_days_as_always_have_an_index_of_100_in_rain_and_in_sun() -> None:
    found = points(body_of(published(), 63, 70))

    assert [point["index"] for point in found] == [100.0] * 7
    assert {point["conditions"]["rain"] for point in found} == {True, False}
    assert [point["expected"] for point in found] == pytest.approx([sold(number) / 100 for number in range(63, 70)])
    assert all(point["final"] for point in found)


def test_the_answer_says_that_it_is_a_model_and_what_it_was_made_from() -> None:
    body = body_of(published(), 63, 70)
    [series] = body["series"]

    assert (body["kind"], body["metric"], body["interval_percent"], body["history_weeks"]) == (
        "model",
        "net_sales",
        95,
        8,
    )
    assert series["history"] == {"from": "2026-01-13T23:00:00Z", "to": "2026-03-10T23:00:00Z", "points": 56}
    assert series["factors"]["rain"]["wet"] / series["factors"]["rain"]["dry"] == pytest.approx(RAIN_TAKES, rel=1e-3)
    assert (series["store"], series["unit"], series["currency"]) == ("1", "money", "EUR")


def test_values_are_those_of_the_metric() -> None:
    exact = published().body("/v1/metrics/net_sales", store="1", from_=day(63), to=day(70))

    found = body_of(published(), 63, 70)

    assert [(each["start"], each["value"], each["final"]) for each in points(found)] == [
        (each["start"], each["value"], each["final"]) for each in exact["series"][0]["points"]
    ]
    assert found["as_of"] == exact["as_of"]


def test_a_day_out_of_the_ordinary_has_an_interval_without_100() -> None:
    world = world_of()
    at = (FIRST + timedelta(days=65, hours=2)).astimezone(UTC)
    world.receive(receipt(at.isoformat(), minor=sold(65), number=999), END.isoformat())
    world.rebuild("2026-03-19T00:00:00Z")

    found = points(body_of(Asking(world), 63, 70))

    assert found[2]["index"] == 200.0
    assert found[2]["interval"]["low"] > 100
    assert found[1]["interval"]["low"] <= 100 <= found[1]["interval"]["high"]


def test_the_hour_of_the_sale_is_expected_and_the_others_have_nothing_to_expect() -> None:
    found = points(body_of(published(), 63, 64, grain="hour"))

    assert len(found) == 24
    by_index = {point["start"]: point["index"] for point in found}
    assert by_index.pop("2026-03-11T09:00:00Z") == 100.0
    assert set(by_index.values()) == {None}
    assert found[0]["flags"] == ["nothing_expected"]


def test_an_index_knows_nothing_of_the_days_that_it_is_about() -> None:
    world = world_of()
    world.receive(receipt("2026-03-15T11:00:00+01:00", minor=1_000_000, number=999), END.isoformat())
    world.rebuild("2026-03-19T00:00:00Z")

    changed, usual = (points(body_of(asking, 63, 70)) for asking in (Asking(world), published()))

    assert [each["expected"] for each in changed] == [each["expected"] for each in usual]


def test_the_days_before_a_shop_was_there_are_no_history() -> None:
    found = body_of(published(), 21, 28)
    [series] = found["series"]

    assert series["history"] == {"from": "2026-01-06T23:00:00Z", "to": "2026-01-27T23:00:00Z", "points": 21}
    assert {(point["index"], point["interval"], point["expected"]) for point in points(found)} == {(None, None, None)}
    assert all("too_little_history" in point["flags"] and point["points_used"] == 3 for point in points(found))


def test_what_is_not_over_yet_is_expected_and_has_no_index() -> None:
    world = world_of()
    world.rebuild("2026-03-17T12:00:00Z")

    found = points(body_of(Asking(world), 69, 71))

    assert [(each["index"], each["final"], "unfinished" in each.get("flags", ())) for each in found] == [
        (None, False, True),
        (None, False, True),
    ]
    assert found[1]["expected"] is not None


def test_both_layers_are_in_it_and_what_speed_alone_has_seen_is_not_final() -> None:
    world = world_of()
    world.rebuild(f"{day(67)}T00:00:00Z")
    world.pass_time(END)

    body = body_of(Asking(world), 63, 70)

    assert body["as_of"]["layers"] == ["batch", "speed"]
    assert [point["index"] for point in points(body)] == [100.0] * 7
    assert [point["final"] for point in points(body)] == [True] * 4 + [False] * 3


def test_without_weather_the_week_alone_is_expected_and_said_so() -> None:
    world = world_of(skies=False)
    world.rebuild("2026-03-19T00:00:00Z")

    found = points(body_of(Asking(world), 63, 70))

    assert all(point["flags"] == ["weather_left_out"] and point["index"] is not None for point in found)
    assert {point["conditions"]["rain"] for point in found} == {None}


def test_a_holiday_is_named_and_not_guessed_from_too_few() -> None:
    world = world_of(DAYS + 30)
    world.rebuild("2026-05-01T00:00:00Z")

    friday = points(Asking(world).body(INDEX, store="1", from_="2026-04-03", to="2026-04-04", history_weeks=8))[0]

    assert friday["conditions"]["holidays"] == ["Veľký piatok"]
    assert (friday["index"], friday["points_used"], friday["flags"]) == (None, 0, ["too_little_history"])


def test_a_shop_whose_holidays_nobody_knows_says_so() -> None:
    world = world_of(store=Store(id="1", timezone="Europe/Bratislava"))
    world.rebuild("2026-03-19T00:00:00Z")

    [series] = body_of(Asking(world), 63, 70)["series"]

    assert series["flags"] == ["holidays_unknown"]
    assert {point["index"] for point in series["points"]} == {100.0}


def test_a_range_in_the_middle_of_days_is_about_those_whole_days() -> None:
    found = published().body(INDEX, store="1", from_="2026-03-12T12:00:00Z", to="2026-03-13T12:00:00Z", history_weeks=8)

    assert [point["start"] for point in points(found)] == ["2026-03-11T23:00:00Z", "2026-03-12T23:00:00Z"]
    assert [point["index"] for point in points(found)] == [100.0, 100.0]


def test_shops_of_several_currencies_each_have_their_own() -> None:
    world = World(SHOP, Store(id="2", timezone="UTC", currency=currency("JPY")))
    world.rebuild("2026-03-19T00:00:00Z")

    body = Asking(world).body(INDEX, from_=day(63), to=day(64))

    assert [(each["store"], each["currency"], each["history"]) for each in body["series"]] == [
        ("1", "EUR", None),
        ("2", "JPY", None),
    ]


def test_a_publication_answers_alike_for_ever() -> None:
    world = world_of()
    world.rebuild("2026-03-19T00:00:00Z")
    asking = Asking(world)
    before = body_of(asking, 63, 70, as_of=1)
    world.receive(receipt("2026-03-15T11:00:00+01:00", minor=1_000_000, number=999), "2026-03-19T01:00:00Z")
    world.rebuild("2026-03-20T00:00:00Z")

    assert body_of(asking, 63, 70, as_of=1) == before
    assert body_of(asking, 63, 70) != before


@pytest.mark.parametrize(
    ("path", "changed", "status", "code"),
    [
        ("/v1/index/net_sale", {}, 404, "unknown_name"),
        (INDEX, {"store": "7"}, 404, "unknown_name"),
        (INDEX, {"to": "2026-03-11"}, 422, "bad_question"),
        (INDEX, {"timezone": "Mars/Olympus"}, 422, "bad_question"),
        (INDEX, {"grain": "week"}, 422, "bad_question"),
        (INDEX, {"history_weeks": 7}, 422, "bad_question"),
        (INDEX, {"history_weeks": 27}, 422, "bad_question"),
        (INDEX, {"compare": "previous_week"}, 422, "unknown_argument"),
        (INDEX, {"to": "2026-06-12"}, 422, "range_too_long"),
        (INDEX, {"grain": "hour", "to": "2028-06-12"}, 422, "range_too_long"),
        (INDEX, {"as_of": 9}, 404, "unknown_name"),
    ],
)
def test_an_index_that_cannot_be_answered_is_refused(
    path: str, changed: dict[str, object], status: int, code: str
) -> None:
    question = {"store": "1", "from_": "2026-03-11", "to": "2026-03-12"}

    problem = published().refusal(path, **question | changed)

    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["detail"]


def test_a_quarter_is_the_longest_range() -> None:
    assert len(points(published().body(INDEX, store="1", from_="2026-03-11", to="2026-06-11"))) == 92


def test_more_than_twenty_stores_are_queried_in_several_requests() -> None:
    asking = Asking(World(*(Store(id=str(number), timezone="UTC") for number in range(21))))

    assert asking.refusal(INDEX, from_=day(63), to=day(64))["code"] == "too_many_stores"
