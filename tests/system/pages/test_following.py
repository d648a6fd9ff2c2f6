"""A visible page follows its answers: lines, changes, tables, and the day itself."""

import re
from datetime import timedelta

from playwright.sync_api import Browser, Page, Route, expect

from tests.support import receipt
from tests.support.world_api import Asking
from tests.system.pages.sample_stores import NOW, OVERVIEW_TOKEN
from tests.system.pages.window import WALL, opened

LINE = "svg.spark"
SECONDS_UNTIL_TABLE = 1200
"""Of the page's clock. A request takes as long as a busy machine takes, while this clock goes on."""
AFTER_OTHER_REQUESTS = "fetch('/healthz').then(response => response.status)"
"""Ends after every request that the page has sent before."""
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")


def drawn(page: Page, card: int) -> list[list[float]]:
    """The coordinates of the paths of a card's sparkline: final, provisional, end."""
    paths = page.locator(".store").nth(card).locator(f"{LINE} path").all()
    return [[float(number) for number in NUMBERS.findall(path.get_attribute("d") or "")] for path in paths]


def sell(shops: Asking, number: int, minor: int = 50_000) -> None:
    """A sale at store 7, now."""
    at = NOW + timedelta(seconds=number)
    shops.world.receive(receipt(at.isoformat(), minor=minor, number=98_000 + number, store="7"), at)


def test_a_line_is_drawn_by_the_script_as_it_was_by_the_page(browser: Browser, address: str) -> None:
    with opened(browser, scripts=False) as (page, _):
        page.goto(f"{address}/stores?sort=name")
        as_loaded = [drawn(page, card) for card in range(3)]

    with opened(browser) as (page, _):
        page.goto(f"{address}/stores?sort=name")
        expect(page.locator("#live-state")).to_have_text("Live")
        as_drawn = [drawn(page, card) for card in range(3)]

    assert as_drawn == as_loaded
    assert all(len(end) > 0 for *_, end in as_drawn)


def test_the_end_of_a_line_follows_the_number_above_it(browser: Browser, address: str, shops: Asking) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{address}/stores?sort=name")
        card = page.locator(".store", has_text="Bratislava")
        before = drawn(page, 0)
        number = card.locator("[data-show=value]").first
        said = number.inner_text()
        path = card.locator(f"{LINE} path.end").first.get_attribute("d") or ""

        sell(shops, 11)

        expect(number).not_to_have_text(said)
        expect(card.locator(f"{LINE} path.end").first).not_to_have_attribute("d", path)
        final, provisional, end, inner = drawn(page, 0)
        assert end == inner != before[2]
        assert provisional[-2:] == end[:2]
        assert (len(final), len(provisional)) == (len(before[0]), len(before[1]))
        expect(card.locator(LINE)).to_have_attribute("data-end", "provisional")
        assert complaints == []


def test_a_shared_page_follows_without_a_key_or_a_cookie(browser: Browser, address: str, shops: Asking) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{address}/shared/{OVERVIEW_TOKEN}")
        number = page.locator(".tile", has_text="Net sales").locator("[data-show=value][data-currency=EUR]")
        said = number.inner_text()
        with page.expect_request("**/v1/metrics/**") as asked:
            sell(shops, 13)

        expect(number).not_to_have_text(said)
        assert asked.value.headers["authorization"] == f"Share {OVERVIEW_TOKEN}"
        expect(page.locator("#live-state")).to_have_text("Live")
        assert page.context.cookies() == []
        assert complaints == []


def test_a_sale_is_on_the_overview_within_two_seconds(browser: Browser, address: str, shops: Asking) -> None:
    with opened(browser) as (page, complaints):
        page.clock.install()
        page.goto(address)
        sales = page.locator(".tile", has_text="Net sales").locator("[data-show=value][data-currency=EUR]")
        expect(page.locator("#live-state")).to_have_text("Live")
        before = sales.inner_text()

        sell(shops, 14, minor=123_400)
        for _ in range(2):  # two seconds of the page's clock, however long its requests take
            with page.expect_response(lambda response: "/v1/metrics/" in response.url):
                page.clock.run_for(1000)
        expect(sales).not_to_have_text(before)

        assert float(sales.inner_text().replace(",", "")) == float(before.replace(",", "")) + 1234
        assert complaints == []


def test_a_page_that_sends_too_many_requests_waits_as_told_and_says_so(browser: Browser, address: str) -> None:
    requests: list[str] = []

    def refuse(route: Route) -> None:
        requests.append(route.request.url)
        problem = '{"title": "This key may send 20 requests per second with the scope `read`."}'
        route.fulfill(status=429, headers={"Retry-After": "40"}, content_type="application/problem+json", body=problem)

    with opened(browser) as (page, complaints):
        page.clock.install()
        page.goto(f"{address}/stores/7")
        state = page.locator("#live-state")
        expect(state).to_have_text("Live")
        page.route("**/v1/metrics/**", refuse)
        with page.expect_response(lambda response: response.status == 429):
            page.clock.run_for(2000)

        expect(state).to_have_text("Too many requests; waiting 40 s before the next one")
        expect(page.locator("[data-live]")).to_have_attribute("data-state", "waiting")
        page.evaluate(AFTER_OTHER_REQUESTS)
        sent = len(requests)
        page.clock.run_for(35_000)
        page.evaluate(AFTER_OTHER_REQUESTS)
        assert len(requests) == sent

        page.unroute("**/v1/metrics/**")
        with page.expect_response(lambda response: "/v1/metrics/" in response.url):
            page.clock.run_for(8000)
        expect(state).to_have_text("Live")
        assert complaints
        assert [each for each in complaints if "429" not in each] == []


def test_the_table_under_a_chart_follows_it(browser: Browser, address: str, shops: Asking) -> None:
    with opened(browser) as (page, complaints):
        page.clock.install()
        page.goto(f"{address}/stores/7")
        page.locator("#chart-1 summary").click()
        hour = page.locator("#chart-1-table tr", has_text="15:00").locator("td").first
        before = hour.inner_text()

        sell(shops, 12)
        for _ in range(SECONDS_UNTIL_TABLE):  # it is asked for less often than a number
            page.clock.run_for(1000)
            page.wait_for_timeout(50)
            if hour.inner_text() != before:
                break

        assert hour.inner_text() != before
        expect(page.locator("#chart-1-table")).to_be_visible()
        assert complaints == []


def test_a_page_of_today_becomes_one_of_the_next_day(browser: Browser, address: str) -> None:
    with opened(browser) as (page, _):
        page.clock.install()
        page.goto(f"{address}/stores/7")
        expect(page.locator("#live-state")).to_have_text("Live")

        with page.expect_navigation():
            page.clock.fast_forward("24:00:00")

        expect(page.get_by_role("heading", level=1)).to_have_text("Bratislava, Old Town")


def test_a_requested_day_stays(browser: Browser, address: str) -> None:
    with opened(browser) as (page, _):
        page.goto(f"{address}/stores/7?day=2026-11-21")

        expect(page.locator("#main")).not_to_have_attribute("data-lasts", re.compile("."))


def test_a_few_stores_share_all_of_a_wall(browser: Browser, address: str) -> None:
    with opened(browser, WALL) as (page, _):
        page.goto(f"{address}/stores?sort=name")
        boxes = [box for card in page.locator(".store").all() if (box := card.bounding_box())]

    assert len(boxes) == 3
    assert max(box["y"] + box["height"] for box in boxes) <= WALL[1]
    assert max(box["y"] + box["height"] for box in boxes) >= 0.9 * WALL[1]
    assert max(box["x"] + box["width"] for box in boxes) >= 0.95 * WALL[0]


def test_while_nothing_changes_one_request_is_repeated(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        page.clock.install()
        page.goto(f"{address}/stores/7")
        expect(page.locator("#live-state")).to_have_text("Live")
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url) if "/v1/metrics/" in request.url else None)
        for _ in range(60):
            page.clock.run_for(1000)
            page.wait_for_timeout(100)
            if len(requests) >= 3:  # a slow machine is asked less often
                break

        assert len(set(requests)) == 1
        assert len(requests) >= 3
        assert complaints == []
