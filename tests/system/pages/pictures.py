"""Take the screenshots of docs/how-to/pages.md: `python -m tests.system.pages.pictures [FOLDER]`.

In another folder, pages about the business are taken at every size and in both color schemes as well.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.world_api import OPERATOR_KEY
from tests.support.world_clients import served
from tests.system.pages.sample_stores import sample_stack
from tests.system.pages.window import chromium, opened, sign_in

FOLDER = Path("docs/images/pages")
PATIENCE_MS = 1_000
"""Until scripts have drawn their charts."""


class Picture(NamedTuple):
    """`width`, `height`: of the window, in pixels."""

    name: str
    path: str
    width: int = 1280
    height: int = 900
    colours: str = "light"


BUSINESS = {
    "overview": "/",
    "stores": "/stores",
    "stores-table": "/stores?view=table",
    "store": "/stores/12",
    "store-week": "/stores/12?range=last_7_days",
    "products": "/products?range=last_7_days",
}
SIZES = {"phone": (390, 1300), "laptop": (1280, 900), "wall": (2560, 1440)}
PICTURES = (
    Picture("overview", "/", height=1560),
    Picture("stores", "/stores", height=820),
    Picture("stores-table", "/stores?view=table", height=520),
    Picture("store", "/stores/12", height=1900),
    Picture("store-week", BUSINESS["store-week"], height=1500),
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
VARIANTS = tuple(
    Picture(f"{name}-{size}-{colours}", path, width, height, colours)
    for name, path in BUSINESS.items()
    for size, (width, height) in SIZES.items()
    for colours in ("light", "dark")
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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]), PICTURES + VARIANTS)
    else:
        take(FOLDER, PICTURES)
