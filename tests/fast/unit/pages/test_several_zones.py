"""Pages about stores of several time zones, in some of which it is tomorrow already."""

import html
import json
import re
from datetime import UTC, date, datetime
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from serving_layer.pages.charts import ChartRow, with_ends
from serving_layer.pages.overview import business_days
from serving_layer.responses.metrics import Point
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing, words

ROWS, WHERE = re.compile(r"data-rows=\"([^\"]+)\""), re.compile(r'<p class="where">(.*?)</p>', re.DOTALL)
TOKYO, YORK = (Store(id=zone[-4:].lower(), timezone=zone) for zone in ("Asia/Tokyo", "America/New_York"))


@pytest.fixture(scope="module", params=["Tokyo", "New York"])
def browsing(request: pytest.FixtureRequest) -> Browsing:
    """Which store is the first by name; on Saturday at 15:01 in New York, which is Sunday in Tokyo.

    In New York, the sale of a day at noon is as great as the day of the month.
    """
    names = ("A", "B") if request.param == "Tokyo" else ("B", "A")
    world = World(
        Store(id="tokyo", timezone="Asia/Tokyo", name=names[0]),
        Store(id="york", timezone="America/New_York", name=names[1]),
    )
    for day in range(10, 22):
        value = receipt(f"2026-11-{day}T12:00:00-05:00", minor=100 * day, number=day, store="york")
        world.receive(value, f"2026-11-{day}T17:00:01Z")
    world.rebuild("2026-11-21T18:00:00Z")
    world.pass_time("2026-11-21T20:01:00Z")
    return Browsing(Asking(world))


def drawn(page: str) -> list[dict[str, Any]]:
    [rows] = ROWS.findall(page)
    found: list[dict[str, Any]] = json.loads(html.unescape(rows))
    return found


def head(page: str) -> str:
    [found] = WHERE.findall(page)
    return words(found)


@pytest.mark.parametrize("path", ["/", "/stores?sort=name", "/products"])
def test_the_head_names_the_day_that_has_begun_everywhere_as_totals_do(browsing: Browsing, path: str) -> None:
    answer = json.loads(browsing.get("/v1/metrics/net_sales?range=today&by=total&grain=day"))

    assert answer["series"][0]["points"][0]["date"] == "2026-11-21"
    assert "Sat, 21 Nov 2026, so far" in head(browsing.get(path))


def test_hours_are_called_by_the_clocks_of_stores_and_compared_with_those_of_the_same_weekday(
    browsing: Browsing,
) -> None:
    page = browsing.get("/")

    assert [(row["label"], row["value"], row["before"]) for row in drawn(page) if row["value"]] == [("12:00", 21, 14)]
    assert 'data-zone=""' in page
    assert "highest \N{EURO SIGN}21.00, 12:00" in words(page)


def test_an_hour_ends_where_clocks_are_behind(browsing: Browsing) -> None:
    rows = drawn(browsing.get("/"))

    assert [(row["start"], row["local"], row["ends"]) for row in (rows[0], rows[14], rows[23])] == [
        ("2026-11-20T15:00:00Z", "2026-11-21T00:00:00", "2026-11-21T06:00:00+00:00"),
        ("2026-11-21T05:00:00Z", "2026-11-21T14:00:00", "2026-11-21T20:00:00+00:00"),
        ("2026-11-21T14:00:00Z", "2026-11-21T23:00:00", "2026-11-22T05:00:00+00:00"),
    ]


def test_the_last_day_of_a_range_ends_where_clocks_are_behind(browsing: Browsing) -> None:
    rows = drawn(browsing.get("/?range=last_7_days"))

    assert [(row["date"], row["ends"]) for row in rows][-2:] == [
        ("2026-11-19", "2026-11-20T05:00:00+00:00"),
        ("2026-11-20", "2026-11-21T05:00:00+00:00"),
    ]


def test_a_day_that_has_begun_in_some_stores_has_begun(browsing: Browsing) -> None:
    assert "Sun, 22 Nov 2026, so far" in head(browsing.get("/?day=2026-11-22"))
    assert "data-plot" not in browsing.get("/?day=2026-11-23")
    assert "This period hasn't started." in words(browsing.get("/?day=2026-11-23"))


@pytest.mark.parametrize(("local", "ends"), [("2026-11-01T01:00:00", 7), ("2026-11-01T00:00:00", 5)])
def test_an_hour_that_a_clock_passes_twice_ends_with_its_second_pass(local: str, ends: int) -> None:
    point = Point(start="2026-10-31T15:00:00Z", local=local, value=0, final=False)

    [row] = with_ends([ChartRow("", point, None)], "hour", business_days([TOKYO, YORK]), date(2026, 11, 2))

    assert row.ends == datetime(2026, 11, 1, ends, tzinfo=UTC)


def test_stores_of_one_zone_are_drawn_by_its_clock() -> None:
    world = World(Store(id="1", timezone="Asia/Tokyo"), Store(id="2", timezone="Asia/Tokyo"))
    world.receive(receipt("2026-11-21T09:00:00+09:00", minor=100, store="1"), "2026-11-21T00:00:01Z")
    world.pass_time("2026-11-21T01:01:00Z")

    page = Browsing(Asking(world)).get("/")

    assert 'data-zone="Asia/Tokyo"' in page
    assert {row["ends"] for row in drawn(page)} == {None}
    assert [row["label"] for row in drawn(page) if row["value"]] == ["09:00"]
