"""Series that add up stores: what they say beside their values, and what is refused. Values are the law's."""

import csv
import io
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from master_dataset.registry.stores import GroupVersion, Sensor, Store, currency
from serving_layer.query import aggregate
from serving_layer.query.aggregate import PointStates, StateSums
from tests.support import World, receipt
from tests.support.sensors import record, source_of
from tests.support.world_api import Asking, Body

NET, TRAFFIC = "/v1/metrics/net_sales", "/v1/metrics/traffic_in"
DAY = {"from_": "2026-03-27", "to": "2026-03-28", "by": "total"}
DOOR = Sensor("s", "people_counts")


def sale(world: World, store: str, at: str, minor: int, number: int = 1) -> None:
    world.receive(receipt(at, minor=minor, store=store, number=number), at)


def chain(*stores: Store) -> World:
    """Each store sold for 1.00 at 12:00 UTC."""
    world = World(*stores)
    for store in stores:
        sale(world, store.id, "2026-03-27T12:00:00Z", 100)
    world.pass_time("2026-03-30T00:00:00Z")
    return world


def only(body: Body) -> Any:
    [series] = body["series"]
    return series


def test_a_total_names_no_store_and_says_how_many_it_adds_up() -> None:
    asking = Asking(chain(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC")))

    body = asking.body(NET, **DAY)

    assert only(body) == {
        "group": {},
        "timezone": "UTC",
        "dimensions": {},
        "stores": {"counted": 2, "missing": 0, "poor": 0},
        "points": [{"start": "2026-03-27T00:00:00Z", "date": "2026-03-27", "value": 2.0, "final": False}],
    }
    assert body["currency"] == "EUR"


def test_a_day_of_a_chain_is_that_date_in_each_store_and_final_when_it_is_over_everywhere() -> None:
    east, west = Store(id="1", timezone="Asia/Tokyo"), Store(id="2", timezone="America/New_York")
    world = World(east, west)
    sale(world, "1", "2026-03-26T15:30:00Z", 100)  # the 27th in Tokyo
    sale(world, "2", "2026-03-28T03:30:00Z", 20)  # still the 27th in New York
    world.rebuild("2026-03-28T03:50:00Z")

    early = only(Asking(world).body(NET, **DAY))["points"]
    world.rebuild("2026-03-28T04:00:00Z")
    late = only(Asking(world).body(NET, **DAY))["points"]

    assert [(point["start"], point["date"], point["value"]) for point in early] == [
        ("2026-03-26T15:00:00Z", "2026-03-27", 1.2)
    ]
    assert [early[0]["final"], late[0]["final"]] == [False, True]


def test_hours_have_a_local_instant_where_all_stores_agree_on_it() -> None:
    one, other = Store(id="1", timezone="Europe/Bratislava"), Store(id="2", timezone="Europe/Paris")
    far = Store(id="3", timezone="Asia/Tokyo")
    query = DAY | {"grain": "hour"}

    agreed = only(Asking(chain(one, other)).body(NET, **query))
    apart = only(Asking(chain(one, far)).body(NET, **query))

    assert agreed["points"][13]["local"] == "2026-03-27T13:00:00+01:00"
    assert [point["value"] for point in agreed["points"][13:14]] == [2.0]
    assert agreed["timezone"] is None
    assert len(apart["points"]) == 24
    assert apart["points"][13]["local"] == "2026-03-27T13:00:00"


def test_money_of_two_currencies_is_in_two_series() -> None:
    crown = Store(id="2", timezone="UTC", currency=currency("CZK"))
    asking = Asking(chain(Store(id="1", timezone="UTC"), crown))

    body = asking.body(NET, **DAY)
    counts = asking.body("/v1/metrics/total_transactions_count", **DAY)

    assert [(each["currency"], each["points"][0]["value"]) for each in body["series"]] == [("CZK", 1.0), ("EUR", 1.0)]
    assert body["currency"] is None
    assert only(counts)["points"][0]["value"] == 2


def test_a_store_without_the_source_is_missing_and_counts_in_no_part_of_a_ratio() -> None:
    counting = Store(id="1", timezone="UTC", sensors=(DOOR,))
    world = chain(counting, Store(id="2", timezone="UTC"))
    world.receive(record("people_counts", (0, 10, 0)), "2026-03-27T12:30:00Z", source_of("people_counts"))

    conversion = only(Asking(world).body("/v1/metrics/conversion_rate", **DAY, grain="15m"))

    assert conversion["stores"] == {"counted": 1, "missing": 1, "poor": 1}
    assert conversion["points"][48]["value"] == 10.0


def test_of_a_chain_without_the_source_nothing_is_known() -> None:
    series = only(Asking(chain(Store(id="1", timezone="UTC"))).body(TRAFFIC, **DAY))

    assert (series["points"][0]["value"], series["points"][0]["flags"]) == (None, ["no_source"])
    assert series["stores"] == {"counted": 0, "missing": 1, "poor": 0}


def test_coverage_is_that_of_all_sensors_together() -> None:
    full, dead = Store(id="1", timezone="UTC", sensors=(DOOR,)), Store(id="2", timezone="UTC", sensors=(DOOR,))
    world = World(full, dead)
    for quarter in range(4):
        said = record("people_counts", (15 * quarter, 10, 0))
        world.receive(
            said, f"2026-03-27T{12 + (quarter + 1) // 4}:{15 * (quarter + 1) % 60:02}:30Z", source_of("people_counts")
        )
    world.pass_time("2026-03-30T00:00:00Z")
    hour = {"from_": "2026-03-27T12:00:00Z", "to": "2026-03-27T13:00:00Z", "by": "total", "grain": "hour"}

    [point] = only(Asking(world).body(TRAFFIC, **hour))["points"]

    assert (point["value"], point["flags"]) == (40, ["low_coverage"])  # half of the time: flagged, not masked


def test_facts_of_stores_are_added_but_a_target_has_to_be_shared() -> None:
    alike = [Store(id=id_, timezone="UTC", floor_m2=50, conversion_target=20) for id_ in ("1", "2")]  # type: ignore[arg-type]
    other = Store(id="3", timezone="UTC", conversion_target=30)  # type: ignore[arg-type]
    world = chain(*alike, other)
    for id_ in world.stores:
        world.receive(record("people_counts", (0, 10, 0), id_), "2026-03-27T12:30:00Z", source_of("people_counts"))
    asking = Asking(world)

    def point(metric: str, **stores: object) -> Body:
        found: Body = only(asking.body(f"/v1/metrics/{metric}", **DAY, **stores))["points"][0]
        return found

    assert point("sales_per_sq_m", store=["1", "2"])["value"] == 2.0 / 100
    assert point("sales_per_sq_m")["value"] is None
    assert point("sales_per_sq_m")["flags"] == ["floor_unknown"]
    assert point("missed_sales", store=["1", "2"])["value"] == 20 * (0.2 - 0.1) * 1.0
    assert "targets_differ" in point("missed_sales")["flags"]


def test_each_store_maps_its_own_dates_and_what_was_before_is_added_up_likewise() -> None:
    east, west = Store(id="1", timezone="Asia/Tokyo"), Store(id="2", timezone="America/New_York")
    world = World(east, west)
    sale(world, "1", "2026-03-19T15:30:00Z", 100)  # the 20th in Tokyo
    sale(world, "2", "2026-03-21T03:30:00Z", 100)  # still the 20th in New York
    sale(world, "1", "2026-03-27T03:30:00Z", 300, 2)
    world.rebuild("2026-03-30T00:00:00Z")

    series = only(Asking(world).body(NET, **DAY, compare="previous_week"))

    [point] = series["points"]
    assert (point["value"], point["before"], point["change"]) == (3.0, 2.0, 50.0)
    assert series["compared"]["before"]["from"] == "2026-03-20"
    assert series["compared"]["now"]["hours"] == 48.0


def test_a_total_of_dimensions_has_a_series_per_value() -> None:
    world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC"))
    for store, till, minor in (("1", "A", 100), ("2", "A", 20), ("2", "B", 3)):
        at = "2026-03-27T12:00:00Z"
        world.receive(receipt(at, minor=minor, store=store, till=till), at)

    body = Asking(world).body("/v1/metrics/till_share", **DAY | {"by": "total,till"})

    values = {each["dimensions"]["till"]: each["points"][0]["value"] for each in body["series"]}
    assert values == {"A": pytest.approx(100 * 120 / 123), "B": pytest.approx(100 * 3 / 123)}


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_a_file_of_a_total_has_no_column_of_stores(form: str) -> None:
    crown = Store(id="2", timezone="UTC", currency=currency("CZK"))
    response = Asking(chain(Store(id="1", timezone="UTC"), crown)).response(NET, **DAY, format=form)

    if form == "csv":
        rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(response.text)))
        assert [(row["date"], row["currency"], row["stores_counted"]) for row in rows] == [
            ("2026-03-27", "CZK", "1"),
            ("2026-03-27", "EUR", "1"),
        ]
        assert "store" not in rows[0]
    elif form == "arrow":
        table = pa.ipc.open_stream(response.content).read_all()
        assert table.schema.field("date").type == pa.date32()
        assert table.column("stores_missing").to_pylist() == [0, 0]
        assert "store" not in table.schema.names
    else:
        table = pq.read_table(io.BytesIO(response.content))
        assert table.column("currency").to_pylist() == ["CZK", "EUR"]
        assert "store" not in table.schema.names


def test_a_total_runs_over_more_stores_than_an_answer_holds() -> None:
    world = chain(*(Store(id=f"{number:03}", timezone="UTC") for number in range(230)))

    body = Asking(world).body(f"{NET},total_transactions_count", **DAY)

    net, count = (only(each) for each in body["answers"])
    assert (net["points"][0]["value"], count["points"][0]["value"]) == (230.0, 230)
    assert net["stores"]["counted"] == 230


def test_what_top_leaves_out_is_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    merges = 0

    class Counting(StateSums):
        def merge_point(self, into: PointStates, point: PointStates) -> None:
            nonlocal merges
            merges += 1
            super().merge_point(into, point)

    skus = 40
    world = World(Store(id="1", timezone="UTC"))
    lines: list[dict[str, object]] = [
        {"title": "thing", "sku": f"s{each}", "price": 1, "amount": 1} for each in range(skus)
    ]
    world.receive(receipt("2026-03-27T12:00:00Z", lines), "2026-03-27T12:00:01Z")
    monkeypatch.setattr(aggregate, "StateSums", Counting)

    body = Asking(world).body("/v1/metrics/sku_units", **{**DAY, "by": "total,sku", "grain": "hour"}, top=1)

    assert [sum(point["value"] or 0 for point in each["points"]) for each in body["series"]] == [1, skus - 1]
    assert 0 < merges <= 4 * skus


@pytest.mark.parametrize(
    ("metric", "said", "words"),
    [
        ("net_sales", {"by": "store,total"}, "contradict"),
        ("net_sales", {"limit": 5}, "`limit`"),
        ("net_sales", {"context": "weather"}, "`context`"),
        ("occupancy", {}, "no total over stores"),
        ("power_hours", {"grain": "total"}, "no total over stores"),
    ],
)
def test_what_has_no_total_is_refused_by_name(metric: str, said: dict[str, object], words: str) -> None:
    problem = Asking(World()).refusal(f"/v1/metrics/{metric}", **DAY | said)

    assert problem["code"] == "bad_question"
    assert words in problem["title"]


def test_a_misspelt_total_is_suggested() -> None:
    problem = Asking(World()).refusal(NET, **DAY | {"by": "totl"})

    assert problem["code"] == "unknown_name"
    assert "total" in problem["title"] + problem["detail"]


def test_another_tenants_stores_are_in_no_total() -> None:
    world = chain(Store(id="1", timezone="UTC", tenant="a"), Store(id="2", timezone="UTC", tenant="b"))
    asking = Asking(world)

    series = only(asking.body(NET, **DAY, key=asking.keys.make("a")))

    assert (series["points"][0]["value"], series["stores"]["counted"]) == (1.0, 1)


MOVES = (
    GroupVersion(None, {"region": "West", "format": "city"}),
    GroupVersion(date(2026, 3, 28), {"region": "East", "format": "city"}),
)


def groups_of(asking: Asking, **said: object) -> dict[tuple[str | None, ...], list[float]]:
    body = asking.body(NET, **{"from_": "2026-03-27", "to": "2026-03-30"} | said)
    return {tuple(each["group"].values()): [point["value"] for point in each["points"]] for each in body["series"]}


@pytest.fixture
def moving() -> Asking:
    """Store 1 moves from West to East on the 28th, store 2 is in no group; both sell for 1.00 on each of three days."""
    world = World(Store(id="1", timezone="UTC", groups=MOVES), Store(id="2", timezone="UTC"))
    for store in world.stores:
        for day in (27, 28, 29):
            sale(world, store, f"2026-03-{day}T12:00:00Z", 100, day)
    world.pass_time("2026-03-30T00:00:00Z")
    return Asking(world)


def test_a_store_that_moves_is_in_each_group_on_its_days(moving: Asking) -> None:
    assert groups_of(moving, by="group:region") == {("East",): [1, 1], ("West",): [1], (None,): [1, 1, 1]}
    assert groups_of(moving, by="group:region", attributes="current") == {("East",): [1, 1, 1], (None,): [1, 1, 1]}
    assert groups_of(moving, by=["group:format", "group:region"]) == {
        ("city", "East"): [1, 1],
        ("city", "West"): [1],
        (None, None): [1, 1, 1],
    }


def test_a_month_of_a_store_that_moves_has_the_days_of_each_group(moving: Asking) -> None:
    body = moving.body(NET, from_="2026-03-01", to="2026-04-01", grain="month", by="group:region")

    shown = {each["group"]["region"]: each["points"] for each in body["series"]}
    assert [(point["start"], point["date"], point["value"]) for point in shown["East"]] == [
        ("2026-03-28T00:00:00Z", "2026-03-01", 2)
    ]
    assert [each["stores"]["counted"] for each in body["series"]] == [1, 1, 1]


def test_a_comparison_takes_the_group_of_each_day(moving: Asking) -> None:
    body = moving.body(NET, from_="2026-03-28", to="2026-03-29", by="group:region", compare="previous_period")

    shown = {each["group"]["region"]: each["points"][0] for each in body["series"]}
    assert (shown["East"]["value"], shown["East"]["before"]) == (1, None)
    assert (shown["West"]["value"], shown["West"]["before"]) == (0, 1)
    assert (shown[None]["value"], shown[None]["before"]) == (1, 1)


def test_files_have_a_column_per_group(moving: Asking) -> None:
    said = {"from_": "2026-03-27", "to": "2026-03-30", "grain": "total", "by": "group:region,group:format"}
    rows = list(csv.DictReader(io.StringIO(moving.response(NET, **said, format="csv").text)))

    assert [(row["group_region"], row["group_format"], row["value"]) for row in rows] == [
        ("East", "city", "2.00"),
        ("West", "city", "1.00"),
        ("", "", "3.00"),
    ]


@pytest.mark.parametrize(
    ("by", "code", "words"),
    [
        ("group:regoin", "unknown_name", "region"),
        ("group:", "bad_question", "names no group"),
        ("total,group:region", "bad_question", "contradict"),
        ("store,group:region", "bad_question", "contradict"),
    ],
)
def test_a_group_that_is_not_there_is_refused_by_name(moving: Asking, by: str, code: str, words: str) -> None:
    problem = moving.refusal(NET, **DAY | {"by": by})

    assert problem["code"] == code
    assert words in problem["title"] + problem["detail"]


@pytest.fixture
def ranking() -> Asking:
    """Stores 1 to 5 sell for 5.00 down to 1.00, by two tills, and sold for 1.00 each a week before."""
    world = World(*(Store(id=str(number), timezone="UTC") for number in range(1, 6)))
    for store in world.stores:
        sale(world, store, "2026-03-20T12:00:00Z", 100)
        for till, part in (("A", 60 - 10 * int(store)), ("B", 540 - 90 * int(store))):
            at = "2026-03-27T12:00:00Z"
            world.receive(receipt(at, minor=part, store=store, till=till, number=2), at)
    world.rebuild("2026-03-30T00:00:00Z")
    return Asking(world)


def test_stores_are_sorted_cut_and_the_rest_is_one_series(ranking: Asking) -> None:
    body = ranking.body(NET, from_="2026-03-27", to="2026-03-28", top=2, share="true")

    assert [(each.get("store"), each.get("other"), each["points"][0]["value"]) for each in body["series"]] == [
        ("1", None, 5),
        ("2", None, 4),
        (None, True, 6),
    ]
    assert [each["points"][0]["share"] for each in body["series"]] == [
        pytest.approx(100 * part / 15) for part in (5, 4, 6)
    ]
    assert body["series"][2]["stores"] == {"counted": 3, "missing": 0, "poor": 0}
    assert "group" not in body["series"][2]


def test_a_sorted_store_is_answered_as_ever(ranking: Asking) -> None:
    said = {"from_": "2026-03-20", "to": "2026-03-28", "compare": "previous_week", "grain": "hour"}

    plain = ranking.body(NET, **said)
    ranked = ranking.body(NET, **said, sort="name")

    assert ranked == plain


def test_series_are_sorted_by_change(ranking: Asking) -> None:
    said = {"from_": "2026-03-27", "to": "2026-03-28", "compare": "previous_week"}

    def stores(sort: str) -> list[str]:
        return [each["store"] for each in ranking.body(NET, **said, sort=sort)["series"]]

    assert stores("change") == ["5", "4", "3", "2", "1"]
    assert stores("-change") == stores("-value") == ["1", "2", "3", "4", "5"]


def test_the_rest_of_a_ratio_is_the_ratio_of_the_rest(ranking: Asking) -> None:
    said = {"from_": "2026-03-27", "to": "2026-03-28", "by": "total,till"}

    body = ranking.body("/v1/metrics/till_share", **said, top=1)

    kept, other = body["series"]
    assert (kept["dimensions"], kept["points"][0]["value"]) == ({"till": "B"}, 90)
    assert (other["dimensions"], other["points"][0]["value"], other["other"]) == ({}, 10, True)


def test_each_store_has_a_top_of_its_own(ranking: Asking) -> None:
    said = {"from_": "2026-03-27", "to": "2026-03-28", "by": "till", "top": 1, "limit": 2}

    body = ranking.body("/v1/metrics/till_share", **said)

    assert [(each["store"], each["dimensions"].get("till"), "other" in each) for each in body["series"]] == [
        ("1", "B", False),
        ("1", None, True),
        ("2", "B", False),
        ("2", None, True),
    ]


def test_the_top_of_more_stores_than_an_answer_holds() -> None:
    world = chain(*(Store(id=f"{number:03}", timezone="UTC") for number in range(120)))
    sale(world, "077", "2026-03-27T13:00:00Z", 900, 2)
    asking = Asking(world)

    body = asking.body(NET, from_="2026-03-27", to="2026-03-28", top=1)
    refused = asking.refusal(NET, from_="2026-03-27", to="2026-03-28", sort="-value")

    assert [(each.get("store"), each["points"][0]["value"]) for each in body["series"]] == [("077", 10), (None, 119)]
    assert refused["code"] == "too_many_stores"


@pytest.mark.parametrize(
    ("metric", "said", "words"),
    [
        ("net_sales", {"sort": "change"}, "compare"),
        ("net_sales", {"top": 2, "limit": 5}, "`limit`"),
        ("avg_transaction_value", {"share": "true"}, "has no share"),
        ("unique_devices", {"share": "true"}, "has no share"),
        ("visits_by_stay_time", {"sort": "value"}, "is a list"),
        ("occupancy", {"top": 3}, "windows of one store in order"),
    ],
)
def test_what_cannot_be_ranked_is_refused_by_name(metric: str, said: dict[str, object], words: str) -> None:
    problem = Asking(World()).refusal(f"/v1/metrics/{metric}", from_="2026-03-27", to="2026-03-28", **said)

    assert problem["code"] == "bad_question"
    assert words in problem["title"] + problem["detail"]


def test_a_tag_changes_with_the_request(ranking: Asking) -> None:
    said: list[dict[str, object]] = [{}, {"by": "total"}, {"sort": "value"}, {"top": 1}, {"share": "true"}]
    tags = {ranking.response(NET, from_="2026-03-27", to="2026-03-28", **each).headers["etag"] for each in said}  # type: ignore[arg-type]

    assert len(tags) == len(said)


@pytest.mark.parametrize("more", [{}, {"sort": "name"}, {"by": "total"}])
def test_a_value_that_needs_an_area_says_that_it_is_not_known(more: dict[str, str]) -> None:
    body = Asking(chain(Store(id="1", timezone="UTC"))).body(
        "/v1/metrics/sales_per_sq_m", from_="2026-03-27", to="2026-03-28", **more
    )

    assert only(body)["points"][0]["flags"] == ["floor_unknown"]


@pytest.mark.parametrize("more", [{}, {"sort": "name"}, {"by": "total"}])
def test_a_day_that_is_over_is_not_partial_where_nothing_is_known_of_any_store(more: dict[str, str]) -> None:
    world = World(Store(id="1", timezone="UTC"))
    world.rebuild("2026-03-30T00:00:00Z")

    body = Asking(world).body(
        TRAFFIC, from_="2026-03-27", to="2026-03-28", grain="total", compare="previous_week", **more
    )

    assert "partial" not in only(body)["points"][0]
