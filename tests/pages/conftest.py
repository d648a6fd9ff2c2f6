"""A real browser and the invented shops behind a real port. Without a Chromium on the machine nothing here runs.

The browser is of one module: while it is open a loop runs in this thread, and other tests could not run their own.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.pages.shops import RememberedTables, measured, trading_days
from tests.pages.window import chromium
from tests.world.asking import Asking
from tests.world.listening import served
from tests.world.watch import WorldWatch


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def shops() -> Asking:
    world = trading_days()
    watch = WorldWatch(world)
    watch.measured = measured()
    return Asking(world, readers=RememberedTables(world).readers, watched=watch)


@pytest.fixture(scope="module")
def address(shops: Asking) -> Iterator[str]:
    """Where the pages are served, on this machine alone."""
    with served(shops) as url:
        yield url
