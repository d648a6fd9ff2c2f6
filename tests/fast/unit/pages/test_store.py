"""The page of one store: periods, comparisons, tills, and what is there when nothing is."""

import html
import re
from dataclasses import replace

import pytest

from master_dataset.registry.stores import GroupVersion, Store, currency
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing, words


def plots(page: str) -> list[str]:
    """The queries of its charts."""
    return [html.unescape(path) for path in re.findall(r'data-plot data-query="([^"]+)"', page)]


@pytest.mark.parametrize(
    ("query", "days", "grain"),
    [
        ("", "Sat, 21 Nov 2026, so far", "hour"),
        ("?range=yesterday", "Fri, 20 Nov 2026", None),
        ("?range=last_7_days", "14 Nov \N{EN DASH} 20 Nov 2026", "day"),
        ("?range=last_7_days&grain=hour", "14 Nov \N{EN DASH} 20 Nov 2026", "hour"),
        ("?range=month_to_date", "1 Nov \N{EN DASH} 21 Nov 2026, so far", "day"),
        ("?range=year_to_date&grain=month", "1 Jan \N{EN DASH} 21 Nov 2026, so far", "month"),
        ("?first=2025-12-31&last=2026-11-21", "31 Dec 2025 \N{EN DASH} 21 Nov 2026, so far", "week"),
    ],
)
def test_a_period_has_its_days_and_a_chart_that_fits(
    lasting: Browsing, query: str, days: str, grain: str | None
) -> None:
    page = lasting.get(f"/stores/12{query}")

    assert days in words(page)
    assert {re.findall(r"grain=(\w+)", path)[0] for path in plots(page)} == ({grain} if grain else set())


def test_a_comparison_is_chosen_by_a_link_and_kept_by_others(browsing: Browsing) -> None:
    page = browsing.get("/stores/12?range=last_7_days&compare=previous_year")

    assert 'href="/stores/12?range=last_7_days&amp;compare=none"' in page
    assert 'rel="prev"' in page
    assert 'href="/stores/12?first=2026-11-07&amp;last=2026-11-13&amp;compare=previous_year"' in page
    said = browsing.words("/stores/12?range=last_7_days&compare=previous_year")
    assert "Changes are compared with 14 Nov \N{EN DASH} 20 Nov 2025." in said


def test_without_a_comparison_nothing_is_compared(browsing: Browsing) -> None:
    page = browsing.get("/stores/12?compare=none")

    assert "Changes are compared" not in page
    assert 'data-show="change"' not in page
    assert "was " not in page


def test_a_period_ahead_has_no_numbers_and_no_comparison(browsing: Browsing) -> None:
    day, week = (
        browsing.words("/stores/12?day=2027-01-04"),
        browsing.words("/stores/12?first=2027-01-04&last=2027-01-10"),
    )

    assert "This day hasn't started." in day
    assert "This period hasn't started." in week
    assert "compare" not in f"{day}{week}".replace("Compare with", "").replace("No comparison", "")


def test_tills_share_the_sales_and_one_till_alone_is_not_shown(world: World) -> None:
    assert "Tills" not in Browsing(Asking(world)).words("/stores/12")
    value = receipt("2026-11-21T09:22:00Z", minor=1550, number=5, till="other", store="12")
    world.receive(value, "2026-11-21T09:22:01Z")

    said = Browsing(Asking(world)).words("/stores/12")

    assert "Share of net sales" in said
    assert "123 50.0 %" in said
    assert "other 50.0 %" in said


@pytest.mark.parametrize(
    "name", ["مقهى الصباح في وسط المدينة", "\u05e9\u05dc\u05d5\u05dd", "W" * 200, "Ünïcödé " * 20, "東京" * 60]
)
@pytest.mark.parametrize("path", ["/", "/stores", "/stores?view=table", "/stores/12", "/products?store=12"])
def test_a_name_in_any_script_and_length_is_shown_whole(world: World, name: str, path: str) -> None:
    world.stores["12"] = replace(
        world.stores["12"], name=name.strip(), groups=(GroupVersion(None, {"region": name.strip()}),)
    )

    assert name.strip() in html.unescape(Browsing(Asking(world)).get(path))


@pytest.fixture(scope="module")
def rich() -> Browsing:
    world = World(Store(id="1", timezone="UTC", name="Rich", currency=currency("JPY")))
    for number, day in enumerate(("2026-11-20", "2026-11-21")):
        lines = [{"title": "all", "price": 9_999_999_999, "amount": 99, "sku": "1"}] * 200
        world.receive(receipt(f"{day}T08:00:00Z", lines, number=number, store="1"), f"{day}T08:00:01Z")
    world.pass_time("2026-11-21T09:31:00Z")
    return Browsing(Asking(world))


@pytest.mark.parametrize("path", ["/", "/stores", "/stores?view=table", "/stores/1", "/stores/1?range=last_7_days"])
def test_amounts_of_many_digits_are_written_whole(rich: Browsing, path: str) -> None:
    assert "197,999,999,980,200" in rich.get(path)


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_a_day_on_which_clocks_change_is_compared_by_its_clock(day: str) -> None:
    world = World(Store(id="1", timezone="Europe/Bratislava", name="Shop"))
    for number, each in enumerate((day, f"{day[:-2]}{int(day[-2:]) - 7:02}")):
        value = receipt(f"{each}T12:00:00+01:00", minor=1000, number=number, store="1")
        world.receive(value, f"{each}T12:00:00Z")
    world.rebuild("2026-11-21T11:00:00Z")
    world.pass_time("2026-11-21T12:00:00Z")

    page = Browsing(Asking(world)).words(f"/stores/1?day={day}")

    said = page.partition("State")[2].partition("Download")[0]
    noon = "13:00" if day.startswith("2026-03") else "12:00"
    assert f"{noon} €10.00" in said
    assert len(re.findall(r"\d\d:00", said)) == (23 if day.startswith("2026-03") else 25)
