"""Pages of a real stack in a real browser: a sale arrives by itself, becomes final, and an operator needs no mouse."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.integration.conftest import PATIENCE_SECONDS, UNTIL_A_CUT_COVERS_IT, Stack, until
from tests.support import receipt
from tests.system.pages.window import barriers_in_both_schemes, chromium, opened, sign_in

PATIENCE_MS = PATIENCE_SECONDS * 1000
STORE = "pages-1"
SALES = 8
MOST_TABS = 200
REVOKED_WITHIN_SECONDS = 2.5
FOCUSED = "(each => (each.labels?.[0] || each).textContent.replace(/\\s+/g, ' ').trim())(document.activeElement)"
STAYS = "window.stays = true"
"""Gone when the page is loaded again."""
WATCH = """(place) => {
  window.seen = {};
  const look = () => { window.seen[place.textContent] ??= Date.now(); };
  new MutationObserver(look).observe(place, { childList: true, characterData: true, subtree: true });
}"""
"""Remembers when which number was first there: an assertion looks less and less often."""


class Shop(NamedTuple):
    """A store of the stack whose clock shows about noon, and where its pages are."""

    stack: Stack
    zone: str

    @property
    def address(self) -> str:
        return self.stack.settings.api_url

    @property
    def key(self) -> str:
        return self.stack.operator_key

    def sell(self, number: int, minor: int, age: timedelta = timedelta(0)) -> None:
        """A receipt over HTTP."""
        at = (datetime.now(UTC) - age).isoformat(timespec="milliseconds")
        value, headers = receipt(at, minor=minor, number=number, store=STORE), {"Content-Type": "application/json"}
        answer = self.stack.request("POST", "/v1/events/pos_transactions", content=value, headers=headers)
        assert answer.status_code == 202, answer.text

    def sold(self) -> tuple[float, int]:
        """All that it ever sold, as REST says it, and how many events wait."""
        first, last = (f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}" for days in (-30, 2))
        body = self.stack.get("/v1/metrics/net_sales", store=STORE, grain="total", **{"from": first, "to": last})
        return body["series"][0]["points"][0]["value"] or 0, body["as_of"]["waiting_for_batch"]

    def sold_today(self) -> float:
        """What it sold since midnight where it is."""
        body = self.stack.get("/v1/metrics/net_sales", store=STORE, grain="total", range="today")
        return body["series"][0]["points"][0]["value"] or 0

    def wait_until_sold(self, amount: float) -> None:
        """Until REST says so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (sold := self.sold()[0]) != amount:
            assert time.monotonic() < deadline, sold
            time.sleep(0.2)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def shop(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    ahead = 12 - datetime.now(UTC).hour
    zone = f"Etc/GMT{-ahead:+d}" if ahead else "Etc/GMT"
    written = tmp_path_factory.mktemp("shop") / "stores.yaml"
    written.write_text(f'stores:\n  - {{id: "{STORE}", name: "Seen, in a browser", timezone: "{zone}"}}\n')
    stack.run("stores", "load", str(written))
    today = f"/v1/metrics/net_sales?store={STORE}&range=today"
    until(lambda: stack.request("GET", today).is_success, "the speed layer has not begun")
    return Shop(stack, zone)


def reach(page: Page, name: str) -> None:
    """Press Tab until what is called so has the focus."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    pytest.fail(f"{name!r} is not reached by the keyboard")


def enter(page: Page) -> None:
    """Press Enter, and be where it leads."""
    with page.expect_navigation():
        page.keyboard.press("Enter")


def follow(page: Page, name: str) -> None:
    """A link or a button, by the keyboard."""
    reach(page, name)
    enter(page)


def fill(page: Page, name: str, text: str) -> None:
    reach(page, name)
    page.keyboard.type(text)


def test_a_sale_is_on_the_page_of_its_store_without_a_reload(
    shop: Shop, browser: Browser, record_property: Callable[[str, object], None]
) -> None:
    shop.sell(0, 100)
    shop.wait_until_sold(1.00)  # a page that was opened before the first sale loads again to draw it
    seconds = []
    with opened(browser) as (page, complaints):
        sign_in(page, shop.address, shop.key)
        page.goto(f"{shop.address}/stores/{STORE}")
        sales = page.locator("[data-show=value]").first
        expect(sales).to_have_text("1.00", timeout=PATIENCE_MS)
        expect(page.locator("#live-state")).to_have_text("Live", timeout=PATIENCE_MS)
        page.evaluate(STAYS)
        sales.evaluate(WATCH)
        for number in range(1, SALES + 1):
            time.sleep(0.37)  # so that sales fall on other moments between two questions of the page
            begun = time.time()
            shop.sell(number, 100)
            expect(sales).to_have_text(f"{1 + number}.00", timeout=PATIENCE_MS)
            seconds.append(round(page.evaluate("window.seen")[f"{1 + number}.00"] / 1000 - begun, 2))

        assert shop.sold() == (1 + SALES, 0)
        assert page.evaluate("window.stays") is True
        assert complaints == []
    record_property("seconds_from_sale_to_page", seconds)


@pytest.mark.nightly
def test_what_is_provisional_becomes_final_while_somebody_looks(shop: Shop, browser: Browser) -> None:
    before = shop.sold()[0]
    shop.sell(100, 4200, timedelta(hours=22))  # yesterday, where it is noon
    yesterday = (datetime.now(ZoneInfo(shop.zone)) - timedelta(hours=22)).date()
    shop.wait_until_sold(before + 42)
    with opened(browser) as (page, complaints):
        sign_in(page, shop.address, shop.key)
        page.goto(f"{shop.address}/stores/{STORE}?day={yesterday}")
        tile = page.locator(".tile", has_text="Net sales")
        expect(tile.locator("[data-show=value]")).to_have_text("42.00", timeout=PATIENCE_MS)
        expect(tile.locator(".state")).to_have_text("provisional")
        page.evaluate(STAYS)

        shop.stack.galatea("rebuild", "--wait")

        expect(tile.locator(".state")).to_have_text("final", timeout=PATIENCE_MS)
        expect(tile.locator("[data-show=value]")).to_have_text("42.00")
        expect(page.locator("#chart-1-table")).to_contain_text("final", timeout=PATIENCE_MS)
        assert page.evaluate("window.stays") is True
        assert complaints == []


@pytest.mark.nightly
def test_an_operator_previews_publishes_and_goes_back_without_a_mouse(shop: Shop, browser: Browser) -> None:
    shop.stack.galatea("rebuild", "--wait")
    before = shop.sold()[0]
    shop.sell(200, 2500, timedelta(hours=64))  # too old for speed, and on a UTC day that nothing else was sold on
    time.sleep(UNTIL_A_CUT_COVERS_IT)

    with opened(browser) as (page, complaints):
        page.goto(f"{shop.address}/login")
        fill(page, "Key", shop.key)
        enter(page)
        follow(page, "Operations")
        follow(page, "Recomputes")
        fill(page, "Reason", "to see")
        follow(page, "Start")
        expect(page.locator("#progress [aria-current=step]")).to_be_visible(timeout=PATIENCE_MS)
        expect(page.locator("#state")).to_have_text("Preview ready", timeout=PATIENCE_MS)
        expect(page.get_by_role("heading", name="Report")).to_be_visible()
        assert shop.sold() == (before, 1)

        follow(page, "Show corrections")
        expect(page.locator(".causes")).to_contain_text("Late events")
        expect(page.get_by_role("main")).to_contain_text("First load: 4 cells")  # nobody had seen a number of that day

        follow(page, "Recomputes")
        reach(page, "Preview: show what would change")
        page.keyboard.press("ArrowDown")
        fill(page, "Reason", "it was right")
        enter(page)
        expect(page.locator("#state")).to_have_text("Published", timeout=PATIENCE_MS)
        assert shop.sold() == (before + 25, 0)

        newest = shop.stack.get("/v1/publications")["publications"][0]["publication"]
        follow(page, "Publications")
        follow(page, f"Roll back to publication {newest - 1}")
        fill(page, "Reason", "it was wrong")
        follow(page, f"Roll back to publication {newest - 1}")
        expect(page.locator(".notice.good")).to_contain_text("shows readers publication", timeout=PATIENCE_MS)
        assert shop.sold() == (before, 1)
        assert complaints == []


@pytest.mark.nightly
def test_pages_with_real_numbers_pass_accessibility_checks(shop: Shop, browser: Browser) -> None:
    newest = shop.stack.get("/v1/publications")["publications"][1]["publication"]
    found = []
    with opened(browser) as (page, complaints):
        sign_in(page, shop.address, shop.key)
        for path in (
            "/",
            "/?range=last_7_days",
            "/stores",
            "/stores?view=table",
            f"/stores/{STORE}",
            f"/stores/{STORE}?range=last_28_days",
            "/products",
            "/layers",
            "/views",
            "/publications",
            f"/publications/{newest}/rollback",
            "/corrections",
            "/recomputes",
            "/stack",
        ):
            page.goto(shop.address + path)
            found += [(path, *barrier) for barrier in barriers_in_both_schemes(page)]
        page.goto(f"{shop.address}/publications")
        assert complaints == []

    assert found == []


@pytest.mark.nightly
def test_an_hour_leads_to_its_receipts_in_every_language(shop: Shop, browser: Browser) -> None:
    hour = f"{datetime.now(ZoneInfo(shop.zone)):%H}:00"
    before = shop.sold()[0]
    shop.sell(300, 1234)
    shop.wait_until_sold(round(before + 12.34, 2))
    with opened(browser) as (page, complaints):
        sign_in(page, shop.address, shop.key)
        page.goto(f"{shop.address}/")
        page.get_by_role("link", name="7 days").click()
        page.goto(f"{shop.address}/stores/{STORE}?range=today")
        chart = page.locator("figure.chart").first
        chart.locator("summary").click()
        chart.get_by_role("link", name=hour).first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"Receipts, {hour}")
        for name, amount in {"Deutsch": "12,34 €", "Slovenčina": "12,34 €", "Español": "12,34 €"}.items():
            page.get_by_role("button", name=name).click()
            expect(page.locator("tbody tr", has_text=amount).first).to_be_visible()
        page.get_by_role("button", name="English").click()
        expect(page.locator("tbody tr", has_text="€12.34").first).to_be_visible()
        assert complaints == []


@pytest.mark.nightly
def test_a_dead_letter_is_fixed_and_sent_again_and_counts(shop: Shop, browser: Browser) -> None:
    before = shop.sold()[0]
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    value = receipt(at, minor=700, number=400, store=STORE)

    def listed() -> set[str]:
        found = shop.stack.get("/v1/dead-letters", source="pos_transactions", reason="bad_time", limit=1000)
        return {each["id"] for each in found["dead_letters"]}

    known = listed()
    shop.stack.ingest("pos_transactions", [value.replace(at.encode(), b"yesterday, about noon")])
    until(lambda: len(listed() - known) == 1, "the record is no dead letter yet")
    [own] = listed() - known
    with opened(browser) as (page, complaints):
        sign_in(page, shop.address, shop.key)
        page.goto(f"{shop.address}/dead-letters/{own}")
        form = page.get_by_label("The record to send")
        form.fill(form.input_value().replace("yesterday, about noon", at))
        page.get_by_role("button", name="Fix and resend").click()
        expect(page.locator("#replays .state")).to_have_text("event, counts", timeout=PATIENCE_MS)
        page.get_by_role("link", name="Show Seen, in a browser").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Seen, in a browser")
        assert complaints == []
    assert shop.sold()[0] == before + 7


@pytest.mark.nightly
def test_a_share_link_shows_a_store_live_until_it_is_revoked(shop: Shop, browser: Browser) -> None:
    before = shop.sold()[0]
    with opened(browser) as (page, complaints), opened(browser) as (other, _):
        sign_in(page, shop.address, shop.key)
        page.goto(f"{shop.address}/stores/{STORE}?range=today")
        page.get_by_text("Save or share this page").click()
        page.get_by_role("button", name="Create link").click()
        link = page.locator("#made-link").inner_text()

        assert other.goto(link)
        expect(other.get_by_role("heading", level=1)).to_have_text("Seen, in a browser")
        expect(other.locator("#live-state")).to_have_text("Live", timeout=PATIENCE_MS)
        other.evaluate(STAYS)
        shop.sell(500, 300)
        shop.wait_until_sold(round(before + 3, 2))
        sales = other.locator("[data-show=value]").first
        expect(sales).to_contain_text(f"{shop.sold_today():,.2f}", timeout=PATIENCE_MS)
        assert other.evaluate("window.stays") is True

        page.goto(f"{shop.address}/saved")
        page.get_by_role("button", name=f"Revoke /stores/{STORE}").first.click()
        expect(page.get_by_role("status").first).to_contain_text("Revoked.")
        time.sleep(REVOKED_WITHIN_SECONDS)
        ended = other.goto(link)
        assert ended
        assert ended.status == 410
        assert complaints == []
