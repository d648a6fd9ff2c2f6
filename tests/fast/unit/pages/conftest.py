"""Shops of two tenants on one morning, with a publication behind them."""

import pytest

from master_dataset.registry.stores import Store, currency
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

OPEN = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat"), ("08:00-20:00",))


def morning() -> World:
    """A Saturday: 12.40 before the cut and 3.10 after it; 10.00 on the Saturday before."""
    world = World(
        Store(id="12", timezone="Europe/Bratislava", name="Kosice", opening_hours=OPEN, country="SK"),
        Store(id="40", timezone="Asia/Tokyo", name="Ginza", currency=currency("JPY")),
        Store(id="acme-1", timezone="Europe/Bratislava", name="Of another", tenant="acme"),
    )
    world.receive(receipt("2026-11-14T08:10:00Z", minor=1000, store="12"), "2026-11-14T08:10:01Z")
    world.receive(receipt("2026-11-21T08:10:00Z", minor=1240, number=2, store="12"), "2026-11-21T08:10:01Z")
    world.receive(receipt("2026-11-21T08:12:00Z", minor=7700, number=3, store="acme-1"), "2026-11-21T08:12:01Z")
    world.rebuild("2026-11-21T09:00:00Z")
    world.receive(receipt("2026-11-21T09:20:00Z", minor=310, number=4, store="12"), "2026-11-21T09:20:01Z")
    world.pass_time("2026-11-21T09:31:00Z")
    return world


@pytest.fixture
def world() -> World:
    return morning()


@pytest.fixture(scope="module")
def lasting() -> Browsing:
    """One process for all tests of a module that change nothing."""
    return Browsing(Asking(morning()))


@pytest.fixture
def asking(world: World) -> Asking:
    return Asking(world)


@pytest.fixture
def browsing(asking: Asking) -> Browsing:
    return Browsing(asking)
