"""What totals never add up silently: other currencies, stores of which nothing is known, weeks of other days."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from master_dataset.registry.stores import GroupVersion, Store, currency
from serving_layer.query import answer, groups
from tests.fast.unit.serving.test_totals import DAY, DOOR, NET, TRAFFIC, chain, only, sale
from tests.support import World, receipt
from tests.support.sensors import BEGIN, record, source_of
from tests.support.world_api import Asking

WEEKS = {"from_": "2026-03-16", "to": "2026-03-30", "grain": "week", "by": "total"}
HOURS = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), ("08:00-20:00",))


def of_three_currencies() -> Asking:
    """One store sold for 10.00 EUR, 20.00 CZK and 30 JPY."""
    world = World(Store(id="1", timezone="UTC"))
    for number, code in enumerate(("EUR", "CZK", "JPY")):
        world.stores["1"] = Store(id="1", timezone="UTC", currency=currency(code))
        sale(world, "1", "2026-03-27T12:00:00Z", (number + 1) * 1000, number)
    world.rebuild("2026-03-30T00:00:00Z")
    return Asking(world)


def values(body: Any, field: str = "value") -> list[tuple[str, Any]]:
    return [(each["dimensions"]["currency"], each["points"][0][field]) for each in body["series"]]


@pytest.mark.parametrize("by", ["currency", "total,currency"])
def test_currencies_are_ranked_and_cut_each_for_itself(by: str) -> None:
    asking = of_three_currencies()

    top = asking.body(NET, **DAY | {"by": by}, top=1)
    shares = asking.body(NET, **DAY | {"by": by}, share="true")

    assert values(top) == [("CZK", 20.0), ("EUR", 10.0), ("JPY", 30)]
    assert not any(each.get("other") for each in top["series"])
    assert [share for _, share in values(shares, "share")] == [100.0, 100.0, 100.0]


def test_counts_are_ranked_over_currencies() -> None:
    asking = of_three_currencies()

    body = asking.body("/v1/metrics/total_transactions_count", **DAY | {"by": "total,currency"}, top=1, share="true")

    first, other = body["series"]
    assert (first["points"][0]["value"], other["points"][0]["value"], other["other"]) == (1, 2, True)


def test_a_series_by_currency_adds_up_stores_of_any_registered_currency() -> None:
    world = chain(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC"))
    world.stores["1"] = Store(id="1", timezone="UTC", currency=currency("CZK"))
    asking = Asking(world)

    money = asking.body(NET, **DAY | {"by": "total,currency"})
    count = asking.body("/v1/metrics/total_transactions_count", **DAY | {"by": "total,currency"})

    assert values(money) == [("EUR", 2.0)]
    assert values(count) == [("EUR", 2)]


def counted(world: World, store: str, day: int) -> None:
    for quarter in range(4):
        value = record("people_counts", (15 * quarter, 10, 0), store)
        value = value.replace(b"2026-03-27", f"2026-03-{day}".encode())
        world.receive(value, f"2026-03-{day}T13:00:30Z", source_of("people_counts"))


def test_a_change_is_none_where_a_store_is_known_in_one_period_alone() -> None:
    world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", sensors=(DOOR,)))
    for store, day in (("2", 20), ("1", 27), ("2", 27)):
        counted(world, store, day)
    world.rebuild("2026-03-30T00:00:00Z")
    query = {"from_": "2026-03-27T12:00:00Z", "to": "2026-03-27T13:00:00Z", "grain": "hour", "compare": "previous_week"}

    both = only(Asking(world).body(TRAFFIC, **query, by="total"))["points"][0]
    new = only(Asking(world).body(TRAFFIC, **query, by="total", store="1"))["points"][0]
    old = only(Asking(world).body(TRAFFIC, **query, by="total", store="2"))["points"][0]

    assert (both["value"], both["before"], both["change"]) == (80, 40, None)
    assert "stores_differ" in both["flags"]
    assert (new["value"], new["before"], new["change"]) == (40, None, None)
    assert (old["value"], old["before"], old["change"]) == (40, 40, 0.0)
    assert "stores_differ" not in old.get("flags", ())


def compared(points: Any) -> list[tuple[Any, ...]]:
    names = ("value", "before", "change")
    return [(*(point[name] for name in names), "stores_differ" in point.get("flags", ())) for point in points]


def test_an_hour_that_some_stores_cannot_compare_has_no_change() -> None:
    world = World(Store(id="denver", timezone="America/Denver"), Store(id="phoenix", timezone="America/Phoenix"))
    for at in ("2026-03-08T08:10Z", "2026-03-08T09:10Z", "2026-03-15T07:10Z", "2026-03-15T08:10Z", "2026-03-15T09:10Z"):
        for store in world.stores:  # Denver skipped 02:00 on the 8th, which is 09:00 UTC
            sale(world, store, at.replace("Z", ":00Z"), 100, number=int(at[8:10]) * 100 + int(at[11:13]))
    world.rebuild("2026-03-20T00:00:00Z")
    query = {"from_": "2026-03-15", "to": "2026-03-16", "grain": "hour", "compare": "previous_week"}

    chained = only(Asking(world).body(NET, **query, by="total"))["points"]
    denver = only(Asking(world).body(NET, **query, store="denver"))["points"]

    assert [point["local"] for point in chained[:3]] == [f"2026-03-15T0{hour}:00:00" for hour in range(3)]
    assert compared(denver)[2] == (1.0, None, None, False)
    assert compared(chained)[2] == (2.0, 1.0, None, True)
    assert not any(differs for *_, differs in compared(chained)[:2] + compared(chained)[3:])


@pytest.fixture
def of_two_states() -> Asking:
    """Only Berlin has Women's Day; both stores sell for 1.00 on it, every year."""
    stores = (Store(id=each, timezone="UTC", country="DE", subdivision=each) for each in ("BE", "MV"))
    world = World(*stores)
    for year in (2022, 2023):
        for store in world.stores:
            sale(world, store, f"{year}-03-08T12:00:00Z", 100, year)
    world.rebuild("2023-03-20T00:00:00Z")
    return Asking(world)


@pytest.mark.parametrize("grain", ["day", "total"])
def test_stores_without_the_holiday_that_others_compare_leave_no_change(of_two_states: Asking, grain: str) -> None:
    query = {"from_": "2023-03-08", "to": "2023-03-09", "grain": grain, "compare": "holiday:Women's Day"}

    total = only(of_two_states.body(NET, **query, by="total"))["points"]
    berlin = only(of_two_states.body(NET, **query, by="total", store="BE"))["points"]
    other = of_two_states.body(NET, **query, sort="name", top=1)["series"]

    assert compared(total) == [(2.0, 1.0, None, True)]
    assert compared(berlin) == [(1.0, 1.0, 0.0, False)]
    assert [compared(each["points"]) for each in other] == [[(1.0, 1.0, 0.0, False)], [(1.0, None, None, False)]]


def test_a_day_that_has_begun_in_some_stores_is_compared_in_these() -> None:
    world = World(Store(id="1", timezone="Asia/Tokyo"), Store(id="2", timezone="America/New_York"))
    for store in world.stores:
        for number, at in enumerate(("2026-03-20T02:00:00Z", "2026-03-27T02:00:00Z")):
            sale(world, store, at, 100, number)
    world.rebuild("2026-03-27T03:00:00Z")  # it is the 26th in New York

    series = only(Asking(world).body(NET, **DAY, compare="previous_week"))

    assert compared(series["points"]) == [(1.0, 1.0, 0.0, False)]


def moving(*days: date) -> World:
    """Store 1 moves from West to East on the first day, and back on the second; the others stay."""
    versions = [GroupVersion(None, {"region": "West"})]
    versions += [GroupVersion(day, {"region": region}) for day, region in zip(days, ("East", "West"), strict=False)]
    stays = {"2": "East", "3": "West", "4": "North"}
    others = (Store(id=i, timezone="UTC", groups=(GroupVersion(None, {"region": r}),)) for i, r in stays.items())
    world = World(Store(id="1", timezone="UTC", groups=tuple(versions)), *others)
    for day in range(9, 28):
        for store in world.stores:
            sale(world, store, f"2026-03-{day:02}T12:00:00Z", 100, day)
    world.rebuild("2026-03-30T00:00:00Z")
    return world


def regions(world: World, **query: Any) -> Any:
    said = {"from_": "2026-03-16", "to": "2026-03-23", "compare": "previous_week", "by": "group:region"}
    found = Asking(world).body(NET, **said | query)["series"]
    return {each["group"]["region"]: compared(each["points"]) for each in found}


def test_a_group_that_a_store_left_or_joined_in_between_has_no_change() -> None:
    world = moving(date(2026, 3, 16))

    assert regions(world, grain="total") == {
        "East": [(14.0, 7.0, None, True)],
        "North": [(7.0, 7.0, 0.0, False)],
        "West": [(7.0, 14.0, None, True)],
    }
    assert regions(world, grain="total", attributes="current") == {
        "East": [(14.0, 14.0, 0.0, False)],
        "North": [(7.0, 7.0, 0.0, False)],
        "West": [(7.0, 7.0, 0.0, False)],
    }
    days = regions(moving(date(2026, 3, 11)), grain="day")
    assert days["East"] == [(2.0, 1.0, None, True)] * 2 + [(2.0, 2.0, 0.0, False)] * 5
    assert days["West"] == [(1.0, 2.0, None, True)] * 2 + [(1.0, 1.0, 0.0, False)] * 5


@pytest.mark.parametrize("days", [(date(2026, 3, 11),), (date(2026, 3, 18), date(2026, 3, 20))])
def test_a_group_of_which_a_store_is_a_part_for_a_part_of_the_time_has_no_change(days: tuple[date, ...]) -> None:
    found = regions(moving(*days), grain="total")

    changes = {region: (change, differs) for region, [(_, __, change, differs)] in found.items()}
    assert changes == {"East": (None, True), "North": (0.0, False), "West": (None, True)}


@pytest.mark.parametrize("sort", ["change", "-change"])
def test_what_cannot_be_compared_is_sorted_last_by_change(sort: str) -> None:
    said = {"from_": "2026-03-16", "to": "2026-03-23", "compare": "previous_week", "by": "group:region"}

    found = Asking(moving(date(2026, 3, 16))).body(NET, **said, sort=sort)["series"]

    assert [each["group"]["region"] for each in found] == ["North", "East", "West"]


def test_the_floor_of_a_store_that_moved_counts_once_in_what_top_leaves_out() -> None:
    moved = (GroupVersion(None, {"region": "West"}), GroupVersion(date(2026, 3, 15), {"region": "East"}))
    north = (GroupVersion(None, {"region": "North"}),)
    world = World(
        Store(id="1", timezone="UTC", floor_m2=100, groups=moved),
        Store(id="2", timezone="UTC", floor_m2=100, groups=north),
    )
    for day in (10, 20):
        sale(world, "1", f"2026-03-{day}T12:00:00Z", 10000, day)
    sale(world, "2", "2026-03-20T12:00:00Z", 900000)
    world.rebuild("2026-04-05T00:00:00Z")
    asking, query = Asking(world), {"from_": "2026-03-01", "to": "2026-04-01", "grain": "month"}

    alone = only(asking.body("/v1/metrics/sales_per_sq_m", **query, by="total", store="1"))
    other = asking.body("/v1/metrics/sales_per_sq_m", **query, by="group:region", top=1)["series"][-1]

    assert other["other"]
    assert other["points"][0]["value"] == alone["points"][0]["value"] == 2.0


@pytest.mark.parametrize("query", [WEEKS, {"range": "last_week", "grain": "day", "by": "total"}])
def test_weeks_of_stores_that_begin_on_different_days_are_not_added_up(query: dict[str, str]) -> None:
    world = chain(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", week_starts_on="sun"))

    refused = Asking(world).refusal(NET, **query)

    assert (refused["code"], refused["status"]) == ("bad_question", 422)
    assert "week" in refused["detail"]
    assert only(Asking(world).body(NET, **query, store="2"))["stores"]["counted"] == 1


def test_a_store_without_opening_hours_is_missing_from_a_metric_of_open_hours() -> None:
    world = chain(Store(id="1", timezone="UTC", opening_hours=HOURS), Store(id="2", timezone="UTC"))

    of_chain = only(Asking(world).body("/v1/metrics/sales_per_open_hour", **DAY))

    assert of_chain["stores"] == {"counted": 1, "missing": 1, "poor": 0}


def test_what_top_leaves_out_says_how_many_stores_had_poor_sensors() -> None:
    stores = [Store(id=str(number), timezone="UTC", sensors=(DOOR,)) for number in range(3)]
    world = chain(*stores)
    for number in range(3):
        for hour in range(24):
            for quarter in range(4):
                value = record("people_counts", (15 * quarter, 10, 0), str(number))
                value = value.replace(b"T12:", f"T{hour:02}:".encode())
                world.receive(value, f"2026-03-27T{hour:02}:{15 * quarter:02}:30Z", source_of("people_counts"))
    world.pass_time("2026-03-30T00:00:00Z")

    other = Asking(world).body(TRAFFIC, **DAY | {"by": "store"}, top=1)["series"][-1]

    assert other["stores"] == {"counted": 2, "missing": 0, "poor": 0}


def test_a_store_that_was_half_blind_is_poor_although_only_covered_windows_count() -> None:
    world = chain(Store(id="1", timezone="UTC", sensors=(DOOR,)))
    counted(world, "1", 27)

    series = only(Asking(world).body(TRAFFIC, **DAY, only_covered="true"))

    assert series["stores"]["poor"] == 1


def test_a_relative_range_of_a_chain_has_the_dates_that_are_over_in_every_store() -> None:
    world = World(Store(id="1", timezone="Pacific/Auckland"), Store(id="2", timezone="America/Los_Angeles"))
    sale(world, "1", "2026-03-27T12:00:00Z", 100)
    world.pass_time("2026-03-29T20:00:00Z")  # the 30th in Auckland, the 29th in Los Angeles

    body = Asking(world).body(NET, range="last_7_days", by="total")

    assert [point["date"] for point in only(body)["points"]] == [f"2026-03-{day}" for day in range(22, 29)]


def test_a_point_that_lacks_stores_of_its_series_says_how_many_it_has() -> None:
    world = World(Store(id="1", timezone="Asia/Tokyo"), Store(id="2", timezone="America/New_York"))
    sale(world, "1", "2026-03-27T12:00:00Z", 100)
    world.pass_time("2026-03-30T00:00:00Z")
    query = {"from_": "2026-03-27T12:00:00Z", "to": "2026-03-28T12:00:00Z", "by": "total"}

    points = only(Asking(world).body(NET, **query))["points"]
    whole = only(Asking(world).body(NET, **DAY))["points"]

    assert [(point["date"], point.get("stores")) for point in points] == [("2026-03-27", None), ("2026-03-28", None)]
    assert "stores" not in whole[0]
    hours = only(Asking(world).body(NET, **query, grain="hour"))["points"]
    assert {(point["local"], point.get("stores")) for point in hours} >= {("2026-03-27T08:00:00-04:00", 1)}


def test_hours_of_stores_in_several_zones_are_called_by_the_clock() -> None:
    world = chain(Store(id="1", timezone="Europe/Bratislava"), Store(id="2", timezone="Asia/Tokyo"))

    points = only(Asking(world).body(NET, **DAY, grain="hour"))["points"]

    assert [point["local"] for point in points[:2]] == ["2026-03-27T00:00:00", "2026-03-27T01:00:00"]


def test_a_group_that_only_other_stores_have_is_known() -> None:
    west = (GroupVersion(None, {"region": "West"}),)
    world = chain(Store(id="1", timezone="UTC", groups=west), Store(id="2", timezone="UTC"))

    body = Asking(world).body(NET, **DAY | {"by": "group:region"}, store="2")

    assert only(body)["group"] == {"region": None}


def test_the_points_of_all_stores_together_are_limited_before_any_is_read() -> None:
    world = World(*(Store(id=str(number), timezone="UTC") for number in range(400)))
    receipt_ = receipt("2026-03-27T12:00:00Z", minor=100, store="1", number=1)
    world.receive(receipt_, "2026-03-27T12:00:00Z")
    world.pass_time("2026-03-30T00:00:00Z")

    refused = Asking(world).refusal(NET, from_="2025-03-01", to="2026-03-01", by="total", grain="hour")

    assert refused["code"] == "range_too_long"


@pytest.fixture
def of_three_skus() -> Asking:
    """Two stores, each of which sold three SKUs on each of three days."""
    world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC"))
    for day in (23, 24, 25):
        for store in world.stores:
            lines = [{"title": sku, "sku": sku, "price": 1, "amount": 1} for sku in ("a", "b", "c")]
            at = f"2026-03-{day}T12:00:00Z"
            world.receive(receipt(at, lines, number=day, store=store), at)  # type: ignore[arg-type]
    world.rebuild("2026-03-27T00:00:00Z")
    return Asking(world)


MARCH = {"from_": "2026-03-01", "to": "2026-04-01"}


@pytest.mark.parametrize(
    ("metric", "query", "points"),
    [
        ("sku_net_sales", {"by": "total,sku", "top": 3}, 93),  # found by columns
        ("sku_net_sales", {"by": "total,sku", "top": 2}, 93),
        ("sku_net_sales", {"by": "total,sku", "top": 2, "sort": "name"}, 93),
        ("sku_net_sales", {"by": "total,sku"}, 93),
        ("sku_net_sales", {"by": "store,sku", "top": 1}, 124),
        ("net_sales", {"top": 1}, 62),
        ("net_sales", {"top": 2}, 62),
        ("net_sales", {"sort": "name"}, 62),
        ("net_sales", {}, 62),
        ("sku_net_sales", {"by": "sku"}, 186),
    ],
)
def test_the_points_that_are_written_are_limited(
    of_three_skus: Asking, monkeypatch: pytest.MonkeyPatch, metric: str, query: dict[str, Any], points: int
) -> None:
    monkeypatch.setattr(groups, "MOST_POINTS_WRITTEN", points)
    body = of_three_skus.body(f"/v1/metrics/{metric}", **MARCH, **query)

    monkeypatch.setattr(groups, "MOST_POINTS_WRITTEN", points - 1)
    refused = of_three_skus.refusal(f"/v1/metrics/{metric}", **MARCH, **query, timezone="UTC")

    assert sum(len(each["points"]) for each in body["series"]) == points
    assert refused["code"] == "range_too_long"


def test_the_top_of_many_stores_counts_the_series_that_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Asking(chain(*(Store(id=str(number), timezone="UTC") for number in range(10))))
    monkeypatch.setattr(groups, "MOST_POINTS_WRITTEN", 20)

    body = asking.body(NET, from_="2026-03-20", to="2026-03-30", top=1)

    assert [len(each["points"]) for each in body["series"]] == [10, 10]


def refuse_reading(*_: object, **__: object) -> Any:
    raise AssertionError("was read")


@pytest.mark.parametrize(
    ("metrics", "query", "days"),
    [
        ("net_sales", {"grain": "hour"}, 2 * 31),
        ("net_sales", {"grain": "hour", "compare": "previous_week"}, 2 * 31 * 2),
        ("net_sales,sku_net_sales", {"grain": "hour"}, 2 * 31 * 2),
        ("conversion_rate", {"grain": "total"}, 2 * 31 * 2),
    ],
)
def test_the_days_that_are_read_window_by_window_are_limited(
    of_three_skus: Asking, monkeypatch: pytest.MonkeyPatch, metrics: str, query: dict[str, Any], days: int
) -> None:
    monkeypatch.setattr(groups, "MOST_STORE_DAYS", days)
    of_three_skus.body(f"/v1/metrics/{metrics}", **MARCH, by="total", **query)

    monkeypatch.setattr(groups, "MOST_STORE_DAYS", days - 1)
    monkeypatch.setattr(answer, "fetch", refuse_reading)
    refused = of_three_skus.refusal(f"/v1/metrics/{metrics}", **MARCH, by="total", **query, timezone="UTC")

    assert refused["code"] == "range_too_long"
    assert f"{days} days of stores" in refused["title"]


def test_a_quarter_of_a_chain_by_day_may_be_compared() -> None:
    assert groups.MOST_STORE_DAYS >= 457 * 92 * 2 * 2  # of a metric of two views


def test_days_that_are_read_as_days_are_not_limited(of_three_skus: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_STORE_DAYS", 0)

    body = of_three_skus.body(NET, **MARCH, by="total", grain="total")

    assert only(body)["points"][0]["value"] == 18.0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"by": "total,"}, "`by` has an empty name."),
        ({"by": "total", "from_": "tomorrow"}, "`from` is neither a date nor a time: `tomorrow`."),
        ({"by": "a" * 401}, "`by`"),
    ],
)
def test_what_cannot_be_read_is_named(query: dict[str, str], said: str) -> None:
    refused = Asking(chain(Store(id="1", timezone="UTC"))).refusal(NET, **DAY | query)

    assert refused["status"] == 422
    assert said in refused["title"]
    assert len(refused["title"]) < 200


def test_a_store_that_left_its_group_and_has_no_source_any_more_still_counts_in_the_week_before() -> None:
    groups_ = (GroupVersion(None, {"region": "West"}), GroupVersion(date(2026, 3, 24), {"region": "East"}))
    world = World(Store(id="1", timezone="UTC", groups=groups_))
    minutes = int((datetime(2026, 3, 18, 12, tzinfo=UTC) - BEGIN).total_seconds()) // 60
    world.receive(record("people_counts", (minutes, 5, 0), "1"), "2026-03-18T12:20:00Z", source_of("people_counts"))
    world.pass_time("2026-03-26T00:00:00Z")
    asked = {"from_": "2026-03-24", "to": "2026-03-26", "grain": "total", "by": "group:region"}

    east, west = Asking(world).body(TRAFFIC, **asked, compare="previous_week")["series"]

    assert (east["points"][0]["value"], east["points"][0]["flags"]) == (None, ["no_source", "no_counterpart"])
    assert west["points"][0]["before"] == 5


def test_periods_that_overlap_are_compared_where_the_store_is_in_the_group_in_both() -> None:
    groups = (GroupVersion(None, {"region": "a"}), GroupVersion(date(2026, 3, 3), {"region": "b"}))
    world = World(Store(id="1", timezone="UTC", groups=groups))
    for day in range(1, 22):
        sale(world, "1", f"2026-03-{day:02}T12:00:00Z", 100 * day, day)
    world.rebuild("2026-04-02T00:00:00Z")
    weeks = {"from_": "2026-03-08", "to": "2026-03-22", "by": "group:region", "compare": "previous_week"}

    series = Asking(world).body(NET, **weeks, grain="day")["series"]

    [b] = [each for each in series if each["group"]["region"] == "b"]
    assert (b["compared"]["now"]["hours"], b["compared"]["before"]["hours"]) == (14 * 24, 12 * 24)
    assert compared(b["points"][2:]) == [(day, day - 7, pytest.approx(700 / (day - 7)), False) for day in range(10, 22)]
