"""Windows of a real browser: opened at a size and in a color scheme, signed in, checked for accessibility."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--lang=en-GB"]
NARROW, PHONE, LAPTOP, WALL = (320, 640), (390, 844), (1366, 768), (3840, 2160)
COLOURS: Sequence[Literal["light", "dark"]] = ("light", "dark")
PATIENCE_MS = 60_000
"""Other tests use the machine at the same time, and their stack takes precedence."""
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def found_chromium() -> str | None:
    """Where Chromium is; None if it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium; without it, the test is skipped. While it is open, an event loop runs in this thread."""
    found = found_chromium()
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed: pages are not tried in a real browser")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def opened(
    browser: Browser, size: tuple[int, int] = LAPTOP, colours: Any = "light", *, scripts: bool = True
) -> Iterator[tuple[Page, list[str]]]:
    """A page, and the errors on its console."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=colours,
        java_script_enabled=scripts,
        ignore_https_errors=True,  # the authority of a secured stack is its own
        reduced_motion="reduce",
        locale="en-GB",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page, complaints
    context.close()


def sign_in(page: Page, address: str, key: str) -> None:
    """With the login form."""
    page.goto(f"{address}/login")
    page.get_by_label("Key").fill(key)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def settle(page: Page) -> None:
    """Wait until what was loaded or changed has been drawn."""
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def barriers_in_both_schemes(page: Page) -> list[tuple[str, str, str]]:
    """What axe finds, and in which color scheme: all rules in the light one, in the dark one what depends on colors."""
    found: list[tuple[str, str, str]] = []
    for scheme, rules in zip(COLOURS, (RULES, ["color-contrast"]), strict=True):
        page.emulate_media(color_scheme=scheme)
        settle(page)
        found += [(scheme, *barrier) for barrier in barriers(page, rules)]
    return found


def barriers(page: Page, rules: Sequence[str] = RULES) -> list[tuple[str, str]]:
    """What axe finds with all details open: each broken rule, and the first element that breaks it."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)  # not by a script tag: the page would not allow it
    violations = page.evaluate("(rules) => axe.run({ runOnly: rules, resultTypes: ['violations'] })", rules)
    return [(each["id"], each["nodes"][0]["html"][:120]) for each in violations["violations"]]
