"""Every page in a real browser: accessible, and no wider than the screen."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.world_api import OPERATOR_KEY
from tests.system.pages.sample_stores import OVERVIEW_TOKEN, SHARE_TOKEN
from tests.system.pages.window import LAPTOP, NARROW, PHONE, WALL, barriers_in_both_schemes, opened, settle, sign_in

PAGES = [
    "/",
    "/?range=last_28_days",
    "/stores",
    "/stores?view=table",
    "/stores?q=nobody",
    "/stores/12",
    "/stores/12?range=last_7_days",
    "/stores/12?range=year_to_date&grain=week",
    "/stores/12?day=2027-01-01",
    "/stores/12?grain=month",
    "/stores/7",
    "/stores/none",
    "/floor-plans/12",
    "/floor-plans/12?range=last_7_days&shade=dwell_count",
    "/floor-plans/7",
    "/floor-plans/12?range=last_eon",
    "/reports/daily",
    "/reports/daily?day=2026-11-21",
    "/reports/weekly",
    "/products",
    "/products?store=12&range=last_28_days",
    "/products?category=nothing",
    "/layers",
    "/views",
    "/publications",
    "/publications/1/rollback",
    "/corrections",
    "/recomputes",
    "/keys",
    "/stack",
    "/login",
    "/docs",
    "/problems",
    "/problems/mixed_currencies",
    "/nothing",
    "/dead-letters",
    "/dead-letters?reason=bad_time",
    "/dead-letters?from=2027-01-01",
    "/dead-letters/pos_transactions/0/0",
    "/dead-letters/pos_transactions/0/2",
    "/sensors",
    "/sensors?state=problems&days=28&hours=open",
    "/sensors?store=7",
    "/alerts",
    "/alerts?store=7",
    "/alerts/rules/queue",
    "/alerts/rules/tills",
    "/alerts/rules/new?kind=threshold",
    "/alerts/rules/nobodys",
    "/annotations",
    "/annotations?first=2020-01-01&last=2020-01-02",
    "/saved",
    f"/shared/{SHARE_TOKEN}",
    f"/shared/{OVERVIEW_TOKEN}",
    "/shared/nobodys",
]


@pytest.fixture(scope="module")
def operator(browser: Browser, address: str) -> Iterator[tuple[Page, list[str]]]:
    """A page where the operator is signed in, and the errors on its console."""
    with opened(browser) as (page, complaints):
        sign_in(page, address, OPERATOR_KEY)
        yield page, complaints


@pytest.mark.parametrize("path", PAGES)
def test_page_fits_the_screen_and_passes_accessibility_checks(
    operator: tuple[Page, list[str]], address: str, path: str
) -> None:
    page, complaints = operator
    complaints.clear()
    page.goto(address + path)
    wide = []
    for width, height in (NARROW, PHONE, WALL, LAPTOP):
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wide += [(width, over)] if over > 0 else []

    assert wide == []
    assert barriers_in_both_schemes(page) == []
    assert [each for each in complaints if "404" not in each and "422" not in each] == []
