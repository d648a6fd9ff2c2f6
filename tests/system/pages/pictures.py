"""Take the screenshots of the documentation.

    python -m tests.system.pages.pictures                   those of docs/how-to/pages.md
    python -m tests.system.pages.pictures --sheets          the contact sheets of docs/how-to/screens.md
    python -m tests.system.pages.pictures --each FOLDER     every screen at every width, each in a file of its own

`--only NAME` takes just that one, and can be repeated.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import FloatRect, Page

from tests.support.world_api import OPERATOR_KEY
from tests.support.world_clients import served
from tests.system.pages.contact_sheets import make_sheet
from tests.system.pages.sample_stores import OVERVIEW_TOKEN, SHARE_TOKEN, sample_stack
from tests.system.pages.window import COLOURS, chromium, opened, settle, sign_in

FOLDER = Path("docs/images/pages")
SHEETS = Path("docs/images/screens")
PATIENCE_MS = 1_000
"""Until scripts have drawn their charts."""


class Picture(NamedTuple):
    """`width`, `height`: of the window, in pixels."""

    name: str
    path: str
    width: int = 1280
    height: int = 900
    colours: str = "light"


PICTURES = (
    Picture("overview", "/", height=1560),
    Picture("stores", "/stores", height=820),
    Picture("stores-table", "/stores?view=table", height=520),
    Picture("store", "/stores/12", height=1900),
    Picture("store-week", "/stores/12?range=last_7_days", height=1500),
    Picture("products", "/products?range=last_7_days", height=1000),
    Picture("sensors", "/sensors", height=980),
    Picture("floor-plan", "/floor-plans/12?range=last_7_days", height=940),
    Picture("layers", "/layers", height=800),
    Picture("views", "/views", height=1080),
    Picture("corrections", "/corrections", height=880),
    Picture("recompute", "/recomputes", height=1000),
    Picture("dead-letters", "/dead-letters", height=1060),
    Picture("dead-letter", "/dead-letters/pos_transactions/0/0", height=1420),
    Picture("alerts", "/alerts", height=1180),
    Picture("alert-rule", "/alerts/rules/weak-hour", height=900),
    Picture("overview-phone", "/", 390, 1700, "dark"),
    Picture("store-phone", "/stores/12", 390, 1300, "dark"),
    Picture("stores-wall", "/stores", 2560, 1440, "dark"),
)

# Every screen

TALLEST = 5_000
"""Of a picture, in pixels: what is below is more of the same."""
SIZES = {390: 844, 1440: 900, 2560: 1440}
"""The height of the window by its width, in pixels."""


def press(name: str) -> Callable[[Page], None]:
    """Press the first button in the page that has this name."""
    return lambda page: page.get_by_role("main").get_by_role("button", name=name).first.click()


def _share(page: Page) -> None:
    page.get_by_text("Save or share this page").click()


class Screen(NamedTuple):
    """Something that a visitor can see.

    `path`: of the page. `act`: what the visitor does there first. `is_signed_in`: as an operator.
    """

    name: str
    path: str
    act: Callable[[Page], None] | None = None
    is_signed_in: bool = True


SCREENS = (
    Screen("overview", "/"),
    Screen("overview-month", "/?range=last_28_days"),
    Screen("stores-cards", "/stores"),
    Screen("stores-table", "/stores?view=table"),
    Screen("stores-none-found", "/stores?q=nobody"),
    Screen("store-today", "/stores/12"),
    Screen("store-week", "/stores/12?range=last_7_days"),
    Screen("store-year", "/stores/12?range=year_to_date&grain=week"),
    Screen("store-without-sensors", "/stores/7"),
    Screen("store-yen", "/stores/40"),
    Screen("store-future-day", "/stores/12?day=2027-01-01"),
    Screen("receipts", "/receipts?store=12&from=2026-11-21T10:00:00%2B01:00"),
    Screen("floor-plan", "/floor-plans/12?range=last_7_days"),
    Screen("floor-plan-none", "/floor-plans/7"),
    Screen("products", "/products?range=last_7_days"),
    Screen("products-of-store", "/products?store=12&range=last_28_days"),
    Screen("sensors", "/sensors"),
    Screen("alerts", "/alerts"),
    Screen("alert-rule", "/alerts/rules/weak-hour"),
    Screen("alert-rule-new", "/alerts/rules/new?kind=threshold"),
    Screen("report-daily", "/reports/daily"),
    Screen("report-weekly", "/reports/weekly"),
    Screen("annotations", "/annotations"),
    Screen("saved", "/saved"),
    Screen("share-form", "/stores/12?day=2026-11-20", _share),
    Screen("share-link", f"/shared/{SHARE_TOKEN}", is_signed_in=False),
    Screen("share-link-overview", f"/shared/{OVERVIEW_TOKEN}", is_signed_in=False),
    Screen("share-link-ended", "/shared/nobodys", is_signed_in=False),
    Screen("layers", "/layers"),
    Screen("days", "/views"),
    Screen("publications", "/publications"),
    Screen("rollback", "/publications/1/rollback"),
    Screen("corrections", "/corrections"),
    Screen("recomputes", "/recomputes"),
    Screen("recompute-running", "/recomputes/running"),
    Screen("recompute-published", "/recomputes/published"),
    Screen("recompute-failed", "/recomputes/failed"),
    Screen("dead-letters", "/dead-letters"),
    Screen("dead-letters-replay", "/dead-letters?reason=bad_time", press("Check")),
    Screen("dead-letter", "/dead-letters/pos_transactions/0/0"),
    Screen("dead-letter-bytes", "/dead-letters/pos_transactions/0/3"),
    Screen("status", "/stack"),
    Screen("keys", "/keys"),
    Screen("sign-in", "/login", is_signed_in=False),
    Screen("sign-in-needed", "/keys", is_signed_in=False),
    Screen("error-not-found", "/nothing"),
    Screen("error-unknown-store", "/stores/none"),
    Screen("error-refused-range", "/stores/12?range=last_eon"),
    Screen("api-reference", "/docs"),
    Screen("problem-types", "/problems"),
)


def take(folder: Path, pictures: Sequence[Picture]) -> None:
    """All of them, as an operator sees them."""
    with chromium() as browser, served(sample_stack()) as address:
        for picture in pictures:
            with opened(browser, (picture.width, picture.height), picture.colours) as (page, _):
                sign_in(page, address, OPERATOR_KEY)
                page.goto(address + picture.path)
                page.wait_for_timeout(PATIENCE_MS)
                page.screenshot(path=folder / f"{picture.name}.png")


def take_screens(folder: Path, screens: Sequence[Screen], sheets: Path | None = None) -> None:
    """Each at every width in both color schemes, as a file of its own, and the contact sheet of these in `sheets`."""
    taken: dict[str, list[Path]] = {}
    with chromium() as browser, served(sample_stack()) as address:
        for width, is_signed_in in product(SIZES, (True, False)):
            with opened(browser, (width, SIZES[width])) as (page, _):
                if is_signed_in:
                    sign_in(page, address, OPERATOR_KEY)
                for screen in screens:
                    if screen.is_signed_in is not is_signed_in:
                        continue
                    page.goto(address + screen.path)
                    if screen.act:
                        screen.act(page)
                    page.wait_for_timeout(PATIENCE_MS)
                    height = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
                    for colours in COLOURS:
                        page.emulate_media(color_scheme=colours)
                        settle(page)
                        file = folder / f"{screen.name}-{width}-{colours}.png"
                        clip: FloatRect = {"x": 0, "y": 0, "width": width, "height": height}
                        page.screenshot(path=file, full_page=True, clip=clip)
                        taken.setdefault(screen.name, []).append(file)
                    page.emulate_media(color_scheme="light")
        if sheets:
            for name, files in taken.items():
                make_sheet(browser, files, sheets / f"{name}.webp")


def main() -> None:
    """Take what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheets", action="store_true")
    parser.add_argument("--each", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", metavar="NAME")
    given = parser.parse_args()
    names = given.only
    screens = [each for each in SCREENS if not names or each.name in names]
    if given.each:
        given.each.mkdir(parents=True, exist_ok=True)
        take_screens(given.each, screens, SHEETS if given.sheets else None)
    elif given.sheets:
        with tempfile.TemporaryDirectory() as folder:
            take_screens(Path(folder), screens, SHEETS)
    else:
        take(FOLDER, [each for each in PICTURES if not names or each.name in names])


if __name__ == "__main__":
    main()
