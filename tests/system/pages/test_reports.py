"""A report as a mail in a browser, and as a PDF by a real Chromium. Without Chromium, these tests are skipped."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

from deploy.reports.pdf import pdf_of
from deploy.reports.sections import ReportSettings
from serving_layer.reports.mail import mail_of
from serving_layer.responses.reports import read_report
from tests.support.world_api import OPERATOR_KEY
from tests.system.pages.window import LAPTOP, NARROW, PHONE, barriers_in_both_schemes, opened

REPORTS = ["daily", "daily?day=2026-11-21", "weekly"]


@pytest.fixture(params=REPORTS)
def html(request: pytest.FixtureRequest, address: str) -> str:
    """The HTML of a mail."""
    key = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    response = httpx.get(f"{address}/v1/reports/{request.param}", headers=key, timeout=60)
    return mail_of(read_report(response.raise_for_status().content)).html


def test_a_mail_is_legible_in_both_schemes_and_no_wider_than_the_screen(
    browser: Browser, html: str, tmp_path: Path
) -> None:
    file = tmp_path / "mail.html"
    file.write_text(html)
    with opened(browser) as (page, complaints):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())

        assert barriers_in_both_schemes(page) == []
        for width, height in (NARROW, PHONE, LAPTOP):
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert asked == [file.as_uri()]
        assert complaints == []


def test_a_report_becomes_a_pdf(browser: Browser, html: str) -> None:
    assert browser.is_connected()  # there is a Chromium, then
    pdf = pdf_of(html, ReportSettings())

    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")
    assert len(pdf) > 10_000
