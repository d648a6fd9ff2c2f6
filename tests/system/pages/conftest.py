"""A real browser and the invented shops behind a real port. Without a Chromium on the machine nothing here runs.

The browser is of one module: while it is open a loop runs in this thread, and other tests could not run their own.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.asking import Asking
from tests.support.listening import served
from tests.system.pages.shops import invented
from tests.system.pages.window import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def shops() -> Asking:
    return invented()


@pytest.fixture(scope="module")
def address(shops: Asking) -> Iterator[str]:
    """Where the pages are served, on this machine alone."""
    with served(shops) as url:
        yield url
