"""The chart of a chain in Tokyo and New York, in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import served
from tests.system.pages.window import opened

READINGS = 200


@pytest.fixture(scope="module")
def chain() -> Iterator[str]:
    """Both sell for 1.00 each hour; it is Saturday, 15:01 in New York and 05:01 on Sunday in Tokyo."""
    world = World(
        Store(id="tokyo", timezone="Asia/Tokyo", name="Ginza"),
        Store(id="york", timezone="America/New_York", name="Bronx"),
    )
    sold = [(store, hour) for store, until in (("tokyo", 24), ("york", 15)) for hour in range(8, until)]
    for number, (store, hour) in enumerate(sold):
        at = f"2026-11-21T{hour:02}:00:00{'+09:00' if store == 'tokyo' else '-05:00'}"
        world.receive(receipt(at, minor=100, number=number, store=store), at)
    world.pass_time("2026-11-21T20:01:00Z")
    with served(Asking(world)) as address:
        yield address


def plotted(page: Page) -> tuple[Locator, float]:
    """The drawn area of the trend, and its width."""
    plot = page.locator("#chart-trend .u-over")
    box = plot.bounding_box()
    assert box
    return plot, box["width"]


def test_hours_that_are_not_over_in_every_store_are_said_to_be_so_far(browser: Browser, chain: str) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{chain}/")
        expect(page.locator("#live-state")).to_have_text("Live")
        plot, width = plotted(page)
        read = set()
        for part in range(READINGS):
            plot.hover(position={"x": 1 + (width - 2) * part / (READINGS - 1), "y": 20})
            read.add(page.locator("#chart-trend .readout").inner_text().partition(" · previous")[0])

        expected = {f"{hour:02}:00 · \N{EURO SIGN}2.00, provisional" for hour in range(8, 15)}
        expected |= {f"{hour:02}:00 · \N{EURO SIGN}1.00, provisional, so far" for hour in range(15, 24)}
        assert {text for text in read if not text.startswith("07:00")} == expected  # a line begins with an empty hour
        assert complaints == []


def test_days_are_drawn_at_their_dates(browser: Browser, chain: str) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{chain}/?first=2026-11-15&last=2026-11-21")
        expect(page.locator("#live-state")).to_have_text("Live")
        plot, width = plotted(page)

        plot.hover(position={"x": width - 2, "y": 20})

        expect(page.locator("#chart-trend .readout")).to_contain_text(
            "Sat 21 Nov · \N{EURO SIGN}23.00, provisional, so far"
        )
        assert complaints == []
