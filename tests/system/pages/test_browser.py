"""Pages in a real browser: without errors, with numbers that update by themselves."""

from datetime import timedelta

from playwright.sync_api import Browser, expect

from tests.support import receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.system.pages.sample_stores import NOW
from tests.system.pages.window import opened, sign_in


def test_the_chain_shows_what_all_stores_sold_and_the_best_first(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        sign_in(page, address, OPERATOR_KEY)
        page.goto(f"{address}/")
        chain = page.get_by_role("region", name="The chain")
        rows = chain.get_by_role("table", name="Best stores").locator("tbody tr")

        expect(chain.get_by_text("Net sales today").first).to_be_visible()
        expect(chain.locator(".tile").first).to_contain_text("3 stores, provisional")
        expect(rows).to_have_count(4)
        expect(rows.first).to_contain_text("Kosice, Hlavna")
        page.get_by_role("link", name="Tokyo, Ginza").last.click()
        expect(page).to_have_url(f"{address}/stores/40")

    assert complaints == []


def test_numbers_come_by_themselves_and_say_how_old_they_are(browser: Browser, address: str, shops: Asking) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{address}/stores/7")
        sales = page.locator("[data-show=value]").first
        expect(page.locator("#live-state")).to_have_text("Live")
        before = sales.inner_text()

        at = NOW + timedelta(seconds=5)
        value = receipt(at.isoformat(), minor=100_000, number=99_001, store="7")
        shops.world.receive(value, at)

        expect(sales).not_to_have_text(before)
        assert float(sales.inner_text().replace(",", "")) == float(before.replace(",", "")) + 1000
        expect(page.locator("#live-age")).to_contain_text("updated")
        assert complaints == []


def test_charts_are_drawn_and_read_out_under_the_pointer(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{address}/stores/12")
        chart = page.locator("#chart-1")
        expect(chart.locator("canvas")).to_be_visible()
        expect(chart.locator(".readout")).to_contain_text("provisional")

        chart.locator(".u-over").hover(position={"x": 40, "y": 40})

        expect(chart.locator(".readout")).to_contain_text("final")
        assert complaints == []


def test_everything_is_reached_by_the_keyboard(browser: Browser, address: str) -> None:
    with opened(browser) as (page, _):
        page.goto(f"{address}/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

        page.get_by_label("Find a store").focus()
        page.keyboard.type("kosice")
        page.keyboard.press("Enter")
        page.locator("[id^=store-]").get_by_role("link", name="Kosice, Hlavna").press("Enter")

        expect(page.get_by_role("heading", level=1)).to_have_text("Kosice, Hlavna")


def test_without_scripts_all_numbers_are_there(browser: Browser, address: str) -> None:
    with opened(browser, scripts=False) as (page, _):
        page.goto(f"{address}/stores/12")

        page.locator("#chart-1 summary").click()

        expect(page.locator("#chart-1 table")).to_contain_text("11:00")
        expect(page.locator(".tile").first).to_contain_text("EUR")


def test_an_operator_signs_in_starts_a_preview_watches_it_and_leaves(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        sign_in(page, address, OPERATOR_KEY)
        page.goto(f"{address}/recomputes")
        page.get_by_label("Kosice, Hlavna").check()
        page.get_by_label("Reason").fill("to see")
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("heading", level=2)).to_have_text("Waiting")
        page.get_by_role("link", name="Recomputes").first.click()
        expect(page.get_by_role("table", name="Recomputes, newest first")).to_contain_text("to see")

        page.get_by_role("button", name="Sign out").click()

        expect(page.get_by_role("link", name="Sign in")).to_be_visible()
        assert complaints == []


def test_a_chart_is_copied_as_a_command(browser: Browser, address: str) -> None:
    with opened(browser) as (page, _):
        page.goto(f"{address}/stores/12")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("#chart-1 summary").click()

        page.locator("#chart-1").get_by_role("button", name="Copy as curl").click()

        expect(page.locator("#chart-1 [data-copied]")).to_have_text("Copied.")
        assert page.evaluate("navigator.clipboard.readText()").startswith("curl -H")


def test_an_operator_patches_a_dead_letter_and_sees_it_become_an_event(
    browser: Browser, address: str, shops: Asking
) -> None:
    with opened(browser) as (page, complaints):
        sign_in(page, address, OPERATOR_KEY)
        page.goto(f"{address}/dead-letters")
        page.get_by_role("link", name="bad_time").first.click()
        page.get_by_role("link", name="pos_transactions/0/0").click()
        form = page.get_by_label("The record to send")
        expect(page.locator("mark")).to_have_text('"21.11.2026 13:58"')
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("alert")).to_contain_text("Still invalid. Nothing was sent.")

        form.fill(form.input_value().replace("21.11.2026 13:58", "2026-11-21T13:58:00+01:00"))
        page.get_by_role("button", name="Fix and resend").click()
        expect(page.locator("#replays")).to_contain_text("sent, not archived yet")
        shops.dead_letters.archive.catch_up()

        expect(page.locator("#replays .state")).to_have_text("event, counts", timeout=30_000)
        page.get_by_role("link", name="Show Kosice, Hlavna").click()
        expect(page).to_have_url(f"{address}/stores/12?day=2026-11-21")
        assert complaints == []


def test_without_scripts_many_dead_letters_are_tried_and_sent(browser: Browser, address: str, shops: Asking) -> None:
    with opened(browser, scripts=False) as (page, _):
        sign_in(page, address, OPERATOR_KEY)
        page.goto(f"{address}/dead-letters?reason=missing_field")
        page.get_by_label("Field").fill("/interval_ms")
        page.get_by_label("New value").fill("900000")
        page.get_by_role("button", name="Check").click()
        page.get_by_role("button", name="Resend 4 dead letters").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Sent again")
        assert [record.topic for record in shops.dead_letters.sender.carried[-4:]] == ["people_counts"] * 4


def test_an_operator_creates_a_key_and_revokes_it(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        sign_in(page, address, OPERATOR_KEY)
        page.goto(f"{address}/keys")
        page.get_by_label("Name").fill("Till 7")
        page.get_by_role("button", name="Create").click()
        expect(page.locator("#new-key")).to_contain_text("galatea_")

        page.get_by_role("button", name="Revoke Till 7").click()

        expect(page.get_by_role("status").filter(has_text="Revoked.")).to_be_visible()
        expect(page.get_by_role("row", name="Till 7")).to_contain_text("revoked")
        assert complaints == []
