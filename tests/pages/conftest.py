"""A real browser and the invented shops behind a real port. Without a Chromium on the machine nothing here runs.

The browser is of one module: while it is open a loop runs in this thread, and other tests could not run their own.
"""

import shutil
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, sync_playwright

from tests.pages.shops import RememberedTables, measured, trading_days
from tests.world.asking import Asking
from tests.world.watch import WorldWatch

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STARTS_WITHIN = 60


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
    return Asking(world, readers=RememberedTables(world).readers, watched=watch)


@pytest.fixture(scope="module")
def address(shops: Asking) -> Iterator[str]:
    """Where the pages are served, on this machine alone."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(shops.app, "127.0.0.1", port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + STARTS_WITHIN
    while not server.started:
        assert time.monotonic() < deadline, "the pages are not served"
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()
