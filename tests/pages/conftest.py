"""A real browser and the invented shops behind a real port. Without a Chromium on the machine nothing here runs.

The browser is of one module: while it is open a loop runs in this thread, and other tests could not run their own.
"""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.pages.shops import RememberedTables, bury, measured, trading_days
from tests.world.asking import Asking
from tests.world.listening import served
from tests.world.watch import WorldWatch

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed: pages are not tried in a real browser")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def shops() -> Asking:
    world = trading_days()
    watch = WorldWatch(world)
    watch.measured = measured()
    asking = Asking(world, readers=RememberedTables(world).readers, watched=watch)
    bury(asking.letters)
    return asking


@pytest.fixture(scope="module")
def address(shops: Asking) -> Iterator[str]:
    """Where the pages are served, on this machine alone."""
    with served(shops) as url:
        yield url
