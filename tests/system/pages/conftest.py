"""A real browser and the sample stores behind a real port. Without Chromium, these tests are skipped.

The browser is per module: while it is open, an event loop runs in this thread, and other tests cannot run their own.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.world_api import Asking
from tests.support.world_clients import served
from tests.system.pages.sample_stores import sample_stack
from tests.system.pages.window import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def shops() -> Asking:
    return sample_stack()


@pytest.fixture(scope="module")
def address(shops: Asking) -> Iterator[str]:
    """Where the pages are served, on loopback."""
    with served(shops) as url:
        yield url
