"""Pages about a chain of 500 stores: how soon they begin to arrive, and how soon a browser has drawn the largest part.

first byte     of a page that was asked for before, so that its answers may be in memory
drawn          the largest contentful paint in Chromium, of a first visit with an empty cache
weight         the overview and what it links, without the rows of its charts
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
from playwright.sync_api import sync_playwright

from benchmarks import local
from benchmarks.chain import DAYS, published
from benchmarks.cold_answers import api, timed, wait_for_speed
from benchmarks.master import Shape
from benchmarks.page_weight import weight_without_data
from benchmarks.report import Measured, percentile
from tests.system.pages.window import FLAGS, found_chromium

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 300_000
STORES, ROUNDS, VISITS = 500, 60, 9
FIRST_BYTE_SECONDS, DRAWN_SECONDS, MOST_BYTES = 0.3, 1.5, 150_000
OVERVIEW = ("/", "/?range=last_28_days", "/?range=quarter_to_date")
PAGES = (*OVERVIEW, "/stores", "/stores?view=table&range=last_28_days")
DRAWN = """() => new Promise((done) => {
  new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime / 1000))
    .observe({ type: "largest-contentful-paint", buffered: true });
})"""


def chain_pages(size: int) -> Iterator[Measured]:
    """`size` receipts of 500 stores on 92 days, published."""
    first = datetime.now(UTC).date() - timedelta(days=DAYS)
    shape = Shape(STORES, lines=2)
    with (
        published(size, first, DAYS, shape, "sales") as (settings, _files),
        local.running(settings, "kafka", "cassandra", "speed"),
    ):
        wait_for_speed(settings)
        with api(settings):
            yield from _measured(settings)


def _measured(settings: "Settings") -> Iterator[Measured]:
    base = f"http://127.0.0.1:{settings.api.port}"
    with httpx.Client(base_url=base, trust_env=False, timeout=120) as client:
        first = {path: timed(lambda path=path: _first_byte(client, path))[0] for path in PAGES}  # type: ignore[misc]
        warm = {path: [timed(lambda path=path: _first_byte(client, path))[0] for _ in range(ROUNDS)] for path in PAGES}  # type: ignore[misc]
        weights = {path: weight_without_data(client, path) for path in OVERVIEW}  # without the rows of stores
    p95 = {path: round(percentile(seconds, 0.95), 4) for path, seconds in warm.items()}
    details = {"p95": p95, "first visit": {path: round(seconds, 4) for path, seconds in first.items()}}
    yield Measured(
        "overview of 500 stores, first byte p95",
        max(p95.values()),
        FIRST_BYTE_SECONDS,
        "s",
        "limit",
        "low",
        1.0,
        details,
    )
    drawn = {path: round(percentile(list(_drawn(base + path)), 0.5), 3) for path in PAGES}
    yield Measured("overview of 500 stores, drawn", max(drawn.values()), DRAWN_SECONDS, "s", "limit", "low", 1.0, drawn)
    yield Measured("weight without data", max(weights.values()), MOST_BYTES, "bytes", "limit", "low", 1.0, weights)


def _first_byte(client: httpx.Client, path: str) -> None:
    with client.stream("GET", path) as response:
        next(response.raise_for_status().iter_raw())


def _drawn(address: str) -> Iterator[float]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found_chromium(), args=FLAGS)
        for _ in range(VISITS):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            page.goto(address)
            yield page.evaluate(DRAWN)
            context.close()
        browser.close()
