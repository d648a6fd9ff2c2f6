"""Pages in a real browser: without errors, with numbers that update by themselves."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Route, expect

from master_dataset.registry.stores import currency
from serving_layer.pages.figures import figure, suffix
from serving_layer.pages.language import COOKIE, LANGUAGES, Language, currency_symbol, has_symbol_first, use_language
from tests.support import receipt
from tests.support.world_api import EMBEDDER, OPERATOR_KEY, Asking
from tests.system.pages.sample_stores import NOW
from tests.system.pages.window import opened, sign_in

DRAWN_AGAIN = """() => {
  const chart = document.querySelector("#chart-1 [data-plot]");
  const [first, ...others] = JSON.parse(chart.dataset.rows);
  const points = [{ ...first, value: 1 }, ...others], body = { as_of: { cut: chart.dataset.until.replace(" ", "T") } };
  chart.dispatchEvent(new CustomEvent("galatea:answer", { detail: { body, points } }));
}"""
"""An answer of which one number differs arrives."""


def test_the_overview_leads_to_a_store_over_the_same_days(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        sign_in(page, address, OPERATOR_KEY)
        page.goto(f"{address}/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        page.get_by_role("link", name="7 days").click()
        expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")

        page.get_by_role("table", name="Top stores").get_by_role("link", name="Kosice, Hlavna").click()

        expect(page).to_have_url(f"{address}/stores/12?range=last_7_days")
        expect(page.get_by_role("heading", level=1)).to_have_text("Kosice, Hlavna")
        expect(page.locator("#chart-1 canvas")).to_be_visible()

    assert complaints == []


@pytest.mark.parametrize("path", ["/", "/stores/12?range=last_7_days", "/stores/12?range=yesterday&compare=none"])
def test_a_chart_reads_out_what_its_table_says(browser: Browser, address: str, path: str) -> None:
    with opened(browser) as (page, complaints):
        page.goto(address + path)
        chart = page.locator("figure.chart").first
        expect(chart.locator("canvas")).to_be_visible()
        chart.locator("summary").click()
        rows = [[cell.inner_text() for cell in row.locator("th, td").all()] for row in chart.locator("tbody tr").all()]
        plot, box = chart.locator(".u-over"), chart.locator(".u-over").bounding_box()
        assert box
        read = set()
        for part in range(40):
            plot.hover(position={"x": 1 + (box["width"] - 2) * part / 39, "y": 20})
            read.add(chart.locator(".readout").inner_text())

        said = {f"{label} · {value}" for label, value, *_ in rows}
        found = {text for text in read if "not started" not in text}
        assert len(found) >= 5
        assert {
            " · ".join(text.split(" · ")[:2]).rpartition(", ")[0].removesuffix(", provisional") for text in found
        } <= said
        assert complaints == []


def test_a_chart_is_saved_as_a_picture(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{address}/stores/12")
        expect(page.locator("#chart-1 canvas")).to_be_visible()
        page.locator("#chart-1 summary").click()

        with page.expect_download() as download:
            page.locator("#chart-1").get_by_role("button", name="Save as picture (PNG)").click()

        assert download.value.suggested_filename == "Kosice, Hlavna.png"
        assert download.value.path().read_bytes().startswith(b"\x89PNG\r\n")
        assert complaints == []


def test_a_language_is_chosen_and_stays(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        page.goto(f"{address}/stores?view=table")
        for name, language in (("Deutsch", "de"), ("Slovenčina", "sk"), ("Español", "es"), ("English", "en")):
            page.get_by_role("button", name=name).click()
            expect(page).to_have_url(f"{address}/stores?view=table")
            expect(page.locator("html")).to_have_attribute("lang", language)
            page.goto(f"{address}/stores/12")
            expect(page.locator("html")).to_have_attribute("lang", language)
            expect(page.locator("#live-state")).not_to_be_empty()
            page.goto(f"{address}/stores?view=table")

        assert complaints == []


VALUES = (
    0,
    0.25,
    0.35,
    1.005,
    2.5,
    -2.5,
    0.05,
    -0.05,
    999.95,
    1234.565,
    12345.675,
    1234567.891,
    8.345,
    1e-9,
    99999.995,
)


DURATIONS_MS = (0, 499, 500, 1500, 2499.9, 2500, 62_500, 92_500, 3_599_500, 3_600_500)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_script_writes_numbers_as_the_server_does(browser: Browser, address: str, language: Language) -> None:
    with opened(browser) as (page, complaints), use_language(language):
        page.context.add_cookies([{"name": COOKIE, "value": language, "url": address}])
        page.goto(f"{address}/stores/12")
        expect(page.locator("#live-state")).not_to_be_empty()
        written: dict[tuple[str, str, float], str] = {}
        for unit, code in (("money", "EUR"), ("money", "CZK"), ("money", "KWD"), ("percent", "EUR"), ("n", "EUR")):
            place = {
                "unit": unit,
                "digits": currency(code).digits,
                "suffix": suffix(unit),
                "symbol": currency_symbol(code),
                "symbolFirst": "yes" if has_symbol_first() else "",
            }
            texts = page.evaluate(
                "([values, place]) => values.map((each) => galatea.full(each, place))", [VALUES, place]
            )
            written |= {(unit, code, value): text for value, text in zip(VALUES, texts, strict=True)}

        assert written == {(unit, code, value): str(figure(value, unit, code)) for unit, code, value in written}
        assert complaints == []


def test_the_script_writes_durations_as_the_server_does(browser: Browser, address: str) -> None:
    with opened(browser) as (page, _):
        page.goto(f"{address}/stores/12")
        expect(page.locator("#live-state")).not_to_be_empty()

        texts = page.evaluate("(values) => values.map((each) => galatea.full(each, { unit: 'ms' }))", DURATIONS_MS)

    assert texts == [str(figure(value, "ms")) for value in DURATIONS_MS]


@pytest.mark.parametrize(
    ("speed", "cut", "known"),
    [
        ("2026-11-21T17:58:00Z", "2026-11-23T06:00:00Z", "2026-11-23T06:00:00Z"),
        ("2026-11-23T06:00:00.500Z", "2026-11-23T06:00:00Z", "2026-11-23T06:00:00.500Z"),
        (None, "2026-11-23T06:00:00Z", "2026-11-23T06:00:00Z"),
    ],
)
def test_an_answer_knows_what_happened_up_to_the_later_of_both_layers(
    browser: Browser, address: str, speed: str | None, cut: str, known: str
) -> None:
    with opened(browser) as (page, _):
        page.goto(f"{address}/stores/12")
        expect(page.locator("#live-state")).not_to_be_empty()

        assert page.evaluate("(asOf) => galatea.knownUntil(asOf)", {"speed_as_of": speed, "cut": cut}) == known


def test_a_card_without_sales_says_the_same_after_an_update(browser: Browser, address: str) -> None:
    with opened(browser, scripts=False) as (page, _):
        page.goto(f"{address}/stores?day=2026-01-05&sort=name")
        before = page.locator("[data-show=share] p").all_inner_texts()

    with opened(browser) as (page, _):
        page.goto(f"{address}/stores?day=2026-01-05&sort=name")
        expect(page.locator("#live-state")).to_have_text("Live")

        assert page.locator("[data-show=share] p").all_inner_texts() == before


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
        page.evaluate(DRAWN_AGAIN)
        expect(chart.locator(".readout")).to_contain_text("final")
        assert complaints == []


def test_everything_is_reached_by_the_keyboard(browser: Browser, address: str) -> None:
    with opened(browser) as (page, _):
        page.goto(f"{address}/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

        page.goto(f"{address}/stores")
        page.get_by_label("Find").focus()
        page.keyboard.type("kosice")
        page.keyboard.press("Enter")
        page.locator("[id^=store-]").get_by_role("link", name="Kosice, Hlavna").press("Enter")

        expect(page.get_by_role("heading", level=1)).to_have_text("Kosice, Hlavna")


def test_without_scripts_everything_is_readable_and_every_control_works(browser: Browser, address: str) -> None:
    with opened(browser, scripts=False) as (page, _):
        page.goto(f"{address}/stores/12")
        page.locator("#chart-1 summary").click()
        expect(page.locator("#chart-1 table")).to_contain_text("11:00")
        expect(page.get_by_role("button", name="Save as picture")).to_have_count(0)
        expect(page.locator(".tile").first).to_contain_text("€")

        page.locator("details.custom summary").click()
        page.get_by_label("First day").fill("2026-11-09")
        page.get_by_label("Last day").fill("2026-11-15")
        page.locator("#compare").select_option("none")
        page.locator("details.custom").get_by_role("button", name="Show").click()
        expect(page.locator(".step strong")).to_contain_text("9 Nov")
        expect(page.locator("details.custom summary")).to_contain_text("15 Nov 2026")
        page.get_by_role("link", name="The period after").click()
        expect(page.locator(".step strong")).to_contain_text("16 Nov")
        page.get_by_role("link", name="Previous year").click()
        expect(page.get_by_role("link", name="Previous year")).to_have_attribute("aria-current", "true")
        page.get_by_role("link", name="Hours").click()
        expect(page.get_by_role("link", name="Hours")).to_have_attribute("aria-current", "true")

        page.goto(f"{address}/stores")
        page.get_by_role("link", name="Table").click()
        page.get_by_label("Sort by").select_option("name")
        page.get_by_label("Group", exact=True).select_option("region:East")
        page.get_by_role("search").get_by_role("button", name="Show").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("button", name="Deutsch").click()
        expect(page.locator("html")).to_have_attribute("lang", "de")
        expect(page.locator("tbody tr")).to_have_count(1)

        page.goto(f"{address}/products?range=last_7_days")
        page.locator("#categories").get_by_role("link", name="Clothing").first.click()
        expect(page.locator(".crumbs")).to_contain_text("Clothing")
        expect(page.locator("#top-products tbody tr")).to_have_count(6)


def test_an_operator_signs_in_starts_a_preview_watches_it_and_leaves(browser: Browser, address: str) -> None:
    with opened(browser) as (page, complaints):
        sign_in(page, address, OPERATOR_KEY)
        page.get_by_role("link", name="Operations").click()
        page.get_by_role("link", name="Recomputes").click()
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
        page.get_by_role("link", name="Operations").click()
        page.get_by_role("link", name="Dead letters").click()
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


def board(link: str) -> Callable[[Route], None]:
    """A page of another site that shows a link in a frame."""
    frame = f'<iframe title="numbers" src="{link}" width="1000" height="700"></iframe>'
    return lambda route: route.fulfill(body=frame, content_type="text/html")


def test_a_shared_page_is_shown_in_frames_of_one_site_alone(browser: Browser, address: str) -> None:
    with opened(browser) as (page, _):
        sign_in(page, address, OPERATOR_KEY)
        page.goto(f"{address}/stores/12")
        page.get_by_text("Save or share this page").click()
        page.get_by_label("Allow embedding in").select_option(EMBEDDER)
        page.get_by_role("button", name="Create link").click()
        link = page.locator("#made-link").inner_text()

    shown = {}
    for site in (EMBEDDER, "https://elsewhere.example"):
        with opened(browser) as (page, _):
            page.context.grant_permissions(["local-network-access"], origin=site)  # the test's server is on loopback
            page.route(f"{site}/*", board(link))
            with page.expect_response(link):
                page.goto(f"{site}/board")
            inside = page.frame_locator("iframe")
            if site == EMBEDDER:
                expect(inside.get_by_role("heading", level=1)).to_have_text("Kosice, Hlavna")
                expect(inside.locator("#live-state")).to_have_text("Live")
            shown[site] = inside.get_by_role("heading", name="Kosice, Hlavna").count()

    assert shown == {EMBEDDER: 1, "https://elsewhere.example": 0}
