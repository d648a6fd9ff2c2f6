"""Answers over ranges that are relative to today: their dates, and that no cache keeps them past the turn of a day."""

from typing import Any

import pytest

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking

NET = "/v1/metrics/net_sales"
ANSWERED = [NET, "/v1/metrics/net_sales,total_transactions_count", "/v1/index/net_sales", "/v1/views/sales/cells"]


@pytest.fixture
def world() -> World:
    world = World(Store(id="1", timezone="Europe/Bratislava"), Store(id="2", timezone="Asia/Tokyo"))
    for number, at in enumerate(("2026-11-19T12:00", "2026-11-20T12:00", "2026-11-21T09:00")):
        for store, minor in (("1", 100), ("2", 7)):
            world.receive(
                receipt(f"{at}:00Z", minor=minor * 10**number, store=store, number=number), "2026-11-21T09:00:01Z"
            )
    world.rebuild("2026-11-21T10:00:00Z")
    return world


def dates(body: dict[str, Any]) -> dict[str, list[str]]:
    return {each["store"]: [point["date"] for point in each["points"]] for each in body["series"]}


def test_a_named_range_has_the_same_answer_as_its_dates(world: World) -> None:
    asking = Asking(world)
    world.stand_still("2026-11-21T12:00:00Z")
    same = [
        ({"range": "last_7_days"}, {"from_": "2026-11-14", "to": "2026-11-21"}),
        ({"range": "today"}, {"from_": "2026-11-21", "to": "2026-11-22"}),
        ({"from_": "-1d"}, {"from_": "2026-11-20", "to": "2026-11-22"}),
        ({"from_": "2026-11-19", "to": "today"}, {"from_": "2026-11-19", "to": "2026-11-21"}),
    ]
    for relative, absolute in same:
        for path in ANSWERED:
            found, expected = (asking.body(path, **said, store="1") for said in (relative, absolute))

            ranges = [each.pop("range") for each in found.get("answers", [found]) if "range" in each]
            assert found == expected
            wanted = {"from": absolute["from_"], "to": absolute["to"]}
            assert ranges in ([], [wanted | ({"name": relative["range"]} if "range" in relative else {})] * len(ranges))
            assert bool(ranges) == path.startswith("/v1/metrics")


def test_an_answer_says_the_dates_of_its_range_and_each_series_where_stores_disagree(world: World) -> None:
    world.stand_still("2026-11-21T16:00:00Z")
    asking = Asking(world)

    every = asking.body(NET, range="last_7_days")
    total = asking.body(NET, range="last_7_days", by="total")

    assert every["range"] == {"name": "last_7_days"}
    own = {series["store"]: series["range"] for series in every["series"]}
    assert own == {"1": {"from": "2026-11-14", "to": "2026-11-21"}, "2": {"from": "2026-11-15", "to": "2026-11-22"}}
    assert total["range"] == {"name": "last_7_days", "from": "2026-11-14", "to": "2026-11-21"}  # over in both stores
    assert "range" not in asking.body(NET, from_="2026-11-14", to="2026-11-21")


def test_each_store_has_its_own_today(world: World) -> None:
    world.stand_still("2026-11-21T16:00:00Z")  # 17:00 in Bratislava, 01:00 of the next day in Tokyo

    found = Asking(world).body(NET, range="today")

    assert dates(found) == {"1": ["2026-11-21"], "2": ["2026-11-22"]}
    assert dates(Asking(world).body(NET, range="today", timezone="UTC")) == {"1": ["2026-11-21"], "2": ["2026-11-21"]}


@pytest.mark.parametrize("path", ANSWERED)
def test_no_cache_keeps_an_answer_past_the_turn_of_a_day_in_the_zone_of_the_store(world: World, path: str) -> None:
    asking = Asking(world)
    world.stand_still("2026-11-21T22:59:00Z")  # a minute before midnight
    before = asking.response(path, store="1", range="today")
    kept = asking.response(path, store="1", range="today", known=before.headers["etag"])

    world.stand_still("2026-11-21T23:00:00Z")
    after = asking.response(path, store="1", range="today", known=before.headers["etag"])

    assert (kept.status_code, after.status_code) == (304, 200)
    assert after.content != before.content
    found = after.json()
    for each in found.get("answers", [found] if path.startswith("/v1/metrics") else []):
        assert each.pop("range") == {"name": "today", "from": "2026-11-22", "to": "2026-11-23"}
    assert found == asking.body(path, store="1", from_="2026-11-22", to="2026-11-23")


def test_a_range_with_dates_keeps_its_tag_when_the_day_turns(world: World) -> None:
    asking = Asking(world)
    world.stand_still("2026-11-21T22:59:00Z")
    tag = asking.response(NET, store="1", from_="2026-11-21", to="2026-11-22").headers["etag"]

    world.stand_still("2026-11-21T23:00:00Z")

    assert asking.response(NET, store="1", from_="2026-11-21", to="2026-11-22", known=tag).status_code == 304


@pytest.mark.parametrize(
    ("said", "code", "title"),
    [
        ({}, "missing_argument", "`from` is missing."),
        ({"to": "today"}, "missing_argument", "`from` is missing."),
        ({"range": "today", "to": "today"}, "bad_question", "`range=today` cannot be combined with `from` or"),
        ({"range": "last_7_day"}, "bad_question", "There is no `range=last_7_day`."),
        ({"from_": "-7x"}, "bad_question", "`from` is neither a date nor a time: `-7x`."),
        ({"from_": "tomorrow"}, "bad_question", "`from` is neither a date nor a time: `tomorrow`."),
        ({"from_": "today", "to": "yesterday"}, "bad_question", "`to=2026-11-20` is not after `from=2026-11-21`."),
    ],
)
def test_a_range_that_says_nothing_is_refused_by_name(
    world: World, said: dict[str, Any], code: str, title: str
) -> None:
    world.stand_still("2026-11-21T12:00:00Z")
    for path in ANSWERED:
        refused = Asking(world).response(path, store="1", **said).json()

        assert (refused["code"], refused["title"][: len(title)]) == (code, title)
    assert "last_7_days" in Asking(world).response(NET, range="last_7_day").json()["detail"]
