"""Every kind of comparison as an answer, by the examples of the metrics catalogue."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking

OPEN = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), ("08:00-20:00",))
NET = "/v1/metrics/net_sales"
BRATISLAVA = Store(id="1", timezone="Europe/Bratislava", country="SK", subdivision="SK-BL")


def asking(*sales: tuple[str, int], store: Store = BRATISLAVA, cut: str | None = None) -> Asking:
    """A shop that sold these amounts (cents) at these times, each received at once, and published at `cut`.

    Without a cut all of it is published a day after the last sale.
    """
    world = World(store)
    for number, (at, minor) in enumerate(sorted(sales, key=lambda sale: datetime.fromisoformat(sale[0]))):
        received_at = datetime.fromisoformat(at) + timedelta(seconds=1)
        world.receive(receipt(at, minor=minor, number=number), received_at)
    after = datetime.fromisoformat(max(sales, key=lambda sale: datetime.fromisoformat(sale[0]))[0])
    world.rebuild(cut or (after + timedelta(days=40)).replace(minute=0).isoformat())
    return Asking(world)


def series(server: Asking, **arguments: object) -> dict[str, Any]:
    """The one series of an answer about net sales."""
    [found] = server.body(NET, store="1", **arguments)["series"]
    return dict(found)


def numbers(found: dict[str, Any]) -> list[tuple[float | None, float | None, float | None]]:
    """Per point value, before and change."""
    return [(point["value"], point["before"], point["change"]) for point in found["points"]]


def dates(found: dict[str, Any]) -> tuple[str, str, int]:
    """From, to and days of what the series is compared with."""
    before = found["compared"]["before"]
    return before["from"], before["to"], before["days"]


def test_the_previous_period_is_as_many_days_just_before() -> None:
    server = asking(("2026-02-28T10:00:00+01:00", 200), ("2026-03-07T10:00:00+01:00", 300))

    found = series(server, from_="2026-03-07", to="2026-03-14", compare="previous_period")

    assert dates(found) == ("2026-02-28", "2026-03-07", 7)
    assert numbers(found)[:2] == [(3.0, 2.0, 50.0), (0, 0, None)]


def test_the_previous_period_of_whole_months_is_as_many_months() -> None:
    server = asking(("2026-02-28T10:00:00+01:00", 200), ("2026-03-31T10:00:00+02:00", 300))

    found = series(server, from_="2026-03-01", to="2026-04-01", grain="month", compare="previous_period")

    assert dates(found) == ("2026-02-01", "2026-03-01", 28)
    assert numbers(found) == [(3.0, 2.0, 50.0)]
    assert found["points"][0]["days"] == {"now": 31, "before": 28}


def test_the_previous_period_of_two_hours_is_the_same_two_hours_of_the_day_before() -> None:
    server = asking(
        ("2026-03-06T10:00:00+01:00", 200), ("2026-03-06T12:00:00+01:00", 999), ("2026-03-07T11:00:00+01:00", 300)
    )
    hours = {"from_": "2026-03-07T10:00:00+01:00", "to": "2026-03-07T12:00:00+01:00"}

    found = series(server, **hours, grain="total", compare="previous_period")

    assert numbers(found) == [(3.0, 2.0, 50.0)]
    assert found["compared"]["before"]["hours"] == 2


def test_a_day_of_23_hours_is_compared_as_it_is_and_the_hours_are_shown() -> None:
    server = asking(("2026-03-22T10:00:00+01:00", 200), ("2026-03-29T10:00:00+02:00", 300))

    found = series(server, from_="2026-03-29", to="2026-03-30", compare="previous_week")

    assert numbers(found) == [(3.0, 2.0, 50.0)]
    assert (found["compared"]["now"]["hours"], found["compared"]["before"]["hours"]) == (23, 24)
    assert dates(found) == ("2026-03-22", "2026-03-23", 1)


def test_february_of_a_leap_year_is_compared_with_28_days() -> None:
    server = asking(
        ("2027-02-28T10:00:00+01:00", 200), ("2027-03-01T10:00:00+01:00", 999), ("2028-02-29T10:00:00+01:00", 300)
    )
    february = {"from_": "2028-02-01", "to": "2028-03-01", "compare": "previous_year"}

    found = series(server, **february, grain="month")

    assert numbers(found) == [(3.0, 2.0, 50.0)]
    assert (found["compared"]["now"]["days"], *dates(found)) == (29, "2027-02-01", "2027-03-01", 28)


def test_a_29_february_alone_has_no_counterpart() -> None:
    server = asking(("2027-03-01T10:00:00+01:00", 999), ("2028-02-29T10:00:00+01:00", 300))

    found = series(server, from_="2028-02-29", to="2028-03-01", compare="previous_year")

    assert numbers(found) == [(3.0, None, None)]
    assert (found["points"][0]["flags"], found["compared"]["before"]) == (["no_counterpart"], None)


@pytest.mark.parametrize(
    ("compare", "before", "calendar"),
    [
        ("previous_year_454", ("2023-01-29", "2023-01-30", 1), "4-5-4 (NRF)"),
        ("previous_year_454_restated", ("2023-02-05", "2023-02-06", 1), "4-5-4 (NRF), restated"),
    ],
)
def test_the_first_day_of_the_retail_year_2024(compare: str, before: tuple[str, str, int], calendar: str) -> None:
    server = asking((f"{before[0]}T10:00:00+01:00", 200), ("2024-02-04T10:00:00+01:00", 300))

    found = series(server, from_="2024-02-04", to="2024-02-05", compare=compare)

    assert (dates(found), found["compared"]["calendar"]) == (before, calendar)
    assert numbers(found) == [(3.0, 2.0, 50.0)]


def test_week_53_has_no_counterpart_unless_the_year_before_is_restated() -> None:
    server = asking(("2023-02-01T10:00:00+01:00", 200), ("2024-01-31T10:00:00+01:00", 300))
    wednesday = {"from_": "2024-01-31", "to": "2024-02-01"}

    plain = series(server, **wednesday, compare="previous_year_454")
    restated = series(server, **wednesday, compare="previous_year_454_restated")

    assert (numbers(plain), plain["points"][0]["flags"]) == ([(3.0, None, None)], ["no_counterpart"])
    assert numbers(restated) == [(3.0, 2.0, 50.0)]


def test_restated_a_saturday_is_compared_with_a_saturday() -> None:
    server = asking(("2025-03-08T10:00:00+01:00", 200), ("2026-03-07T10:00:00+01:00", 300))

    found = series(server, from_="2026-03-07", to="2026-03-08", compare="previous_year_454_restated")

    assert (dates(found), numbers(found)) == (("2025-03-08", "2025-03-09", 1), [(3.0, 2.0, 50.0)])


@pytest.mark.parametrize("name", ["Good Friday", "good friday", "Veľký piatok"])
def test_good_friday_is_compared_with_good_friday_and_the_days_around_it_with_those_around_it(name: str) -> None:
    server = asking(
        ("2025-04-17T10:00:00+02:00", 100), ("2025-04-18T10:00:00+02:00", 200), ("2026-04-03T10:00:00+02:00", 300)
    )

    found = series(server, from_="2026-04-02", to="2026-04-04", compare=f"holiday:{name}")

    assert dates(found) == ("2025-04-17", "2025-04-19", 2)
    assert numbers(found) == [(0, 1.0, -100.0), (3.0, 2.0, 50.0)]
    assert found["compared"]["calendar"].startswith("public holidays of SK, holidays ")


def test_a_holiday_that_a_country_does_not_have_is_refused_and_those_it_has_are_named() -> None:
    server = asking(("2026-04-03T10:00:00+02:00", 300))

    refused = server.refusal(NET, store="1", from_="2026-04-02", to="2026-04-04", compare="holiday:Thanksgiving")

    assert (refused["status"], refused["code"]) == (404, "unknown_name")
    assert refused["title"] == "There is no public holiday of SK `Thanksgiving`."
    assert "`Good Friday`" in refused["detail"]


def test_hours_of_the_week_are_compared_by_weekday_whatever_the_dates() -> None:
    server = asking(("2025-03-08T10:00:00+01:00", 200), ("2026-03-07T10:00:00+01:00", 300))

    found = series(server, from_="2026-03-02", to="2026-03-09", grain="hour_of_week", compare="previous_year")

    [saturday_at_ten] = [point for point in found["points"] if (point["weekday"], point["hour"]) == (6, 10)]
    assert (saturday_at_ten["value"], saturday_at_ten["before"]) == (3.0, 2.0)
    assert dates(found) == ("2025-03-02", "2025-03-09", 7)


def test_both_passes_of_a_repeated_hour_are_one_hour_of_the_week() -> None:
    server = asking(("2026-10-25T02:10:00+02:00", 1000), ("2026-10-25T02:10:00+01:00", 500))

    found = server.body(NET, store="1", from_="2026-10-25", to="2026-10-26", grain="hour_of_week")["series"][0]

    [two] = [point for point in found["points"] if (point["weekday"], point["hour"]) == (7, 2)]
    assert (two["value"], two["hours_present"], two["value"] / two["hours_present"]) == (15.0, 2, 7.5)


@pytest.mark.parametrize(
    ("grain", "now", "later"),
    [
        ("hour_of_week", {"hours_present": 1.5}, {"hours_present": 1.0}),
        ("weekday", {"days_present": 2}, {"days_present": 1}),
    ],
)
@pytest.mark.parametrize("by", [None, "total"])
def test_hours_and_days_that_have_not_begun_are_not_behind_a_sum(
    grain: str, now: dict[str, float], later: dict[str, float], by: str | None
) -> None:
    world = World(Store(id="1", timezone="UTC"))
    for number, at in enumerate(("2026-03-23T09:10:00Z", "2026-03-30T09:10:00Z")):
        world.receive(receipt(at, minor=3000, number=number), at)
    world.pass_time("2026-03-30T09:30:00Z")
    one_of = {"by": by} if by else {"store": "1"}

    body = Asking(world).body(NET, **one_of, from_="2026-03-23", to="2026-04-06", grain=grain)

    points = {(each["weekday"], each.get("hour")): each for each in body["series"][0]["points"]}
    monday, tuesday = (points[day, 9 if grain == "hour_of_week" else None] for day in (1, 2))
    assert now.items() <= monday.items()
    assert later.items() <= tuesday.items()


def test_hours_that_have_not_begun_are_no_open_hours() -> None:
    world = World(Store(id="1", timezone="UTC", opening_hours=OPEN))
    world.receive(receipt("2026-03-27T09:30:00Z", minor=3000), "2026-03-27T09:30:00Z")
    world.pass_time("2026-03-27T11:00:00Z")
    asking, today = Asking(world), {"store": "1", "range": "today", "grain": "total"}

    alone = asking.body("/v1/metrics/sales_per_open_hour", **today)
    compared = asking.body("/v1/metrics/sales_per_open_hour", **today, compare="previous_week")

    assert [each["series"][0]["points"][0]["value"] for each in (alone, compared)] == [10.0, 10.0]


def test_a_percentage_also_tells_the_points_by_which_it_changed() -> None:
    world = World(BRATISLAVA)
    for number, (day, back) in enumerate((("2026-03-06", -25), ("2026-03-07", -50))):
        lines = [{"title": "sold", "price": 1, "amount": 1}, {"title": "back", "price": -back / 100, "amount": -1}]
        world.receive(receipt(f"{day}T10:00:00+01:00", lines, number=number), f"{day}T10:00:01+01:00")
    world.rebuild("2026-03-09T00:00:00Z")

    body = Asking(world).body(
        "/v1/metrics/return_rate", store="1", from_="2026-03-07", to="2026-03-08", compare="previous_period"
    )

    [point] = body["series"][0]["points"]
    assert (point["value"], point["before"], point["change"], point["change_points"]) == (50.0, 25.0, 100.0, 25.0)
    assert body["change_unit"] == "percent"


def test_nothing_before_makes_no_change() -> None:
    server = asking(("2026-03-07T10:00:00+01:00", 300))

    found = series(server, from_="2026-03-07", to="2026-03-08", compare="previous_week")

    assert numbers(found) == [(3.0, 0, None)]


def test_a_till_that_only_one_side_has_is_a_series_of_its_own() -> None:
    world = World(BRATISLAVA)
    world.receive(receipt("2026-03-06T10:00:00+01:00", minor=200, till="old"), "2026-03-06T10:00:01+01:00")
    world.receive(receipt("2026-03-07T10:00:00+01:00", minor=300, till="new"), "2026-03-07T10:00:01+01:00")
    world.rebuild("2026-03-09T00:00:00Z")

    body = Asking(world).body(
        "/v1/metrics/till_share", store="1", from_="2026-03-07", to="2026-03-08", compare="previous_period", by="till"
    )

    shares = {each["dimensions"]["till"]: each["points"][0] for each in body["series"]}
    assert {till: (point["value"], point["before"]) for till, point in shares.items()} == {
        "new": (100.0, 0.0),
        "old": (0.0, 100.0),
    }


def test_a_question_without_a_comparison_says_nothing_of_one() -> None:
    server = asking(("2026-03-07T10:00:00+01:00", 300))

    body = server.body(NET, store="1", from_="2026-03-07", to="2026-03-08")

    assert set(body) == {"metric", "unit", "grain", "timezone", "series", "as_of", "currency"}
    assert set(body["series"][0]["points"][0]) == {"start", "date", "value", "final"}
