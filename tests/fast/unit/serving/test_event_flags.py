"""An answer says how many of its events are unusual; they still count."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from tests.support import World
from tests.support.receipts import receipt
from tests.support.sensors import source_of
from tests.support.world_api import Asking
from views import registered_views
from views.core.view import flag_counts

NINE, LATE = "2026-03-07T09:00:00Z", "2026-03-07T22:50:00Z"
DISCOUNT = {"title": "coupon", "price": -1.0, "amount": 1, "sku": "1"}
NOTHING = {"title": "bag", "price": 1.0, "amount": 0, "sku": "2"}
ARGUMENTS = {"store": "1", "from_": "2026-03-07", "to": "2026-03-08", "grain": "total", "timezone": "UTC"}


def flags_of(world: World, metric: str = "net_sales", **more: object) -> Any:
    return Asking(world).body(f"/v1/metrics/{metric}", **ARGUMENTS | more).get("event_flags")


def sold(world: World, at: str, *lines: dict[str, object], number: int = 1) -> None:
    world.receive(receipt(at, lines, number=number), datetime.fromisoformat(at) + timedelta(seconds=1))


def test_flags_of_both_layers_are_added() -> None:
    world = World(Store(id="1", timezone="UTC"))
    sold(world, NINE, DISCOUNT, NOTHING)
    world.rebuild("2026-03-07T12:00:00Z")
    sold(world, LATE, DISCOUNT, number=2)
    sold(world, LATE, number=3)

    assert flags_of(world) == {"empty_receipt": 1, "negative_price": 2, "zero_amount": 1}
    assert flags_of(world, "net_items_count") == flags_of(world)


def test_only_requested_windows_are_reported() -> None:
    world = World(Store(id="1", timezone="UTC"))
    sold(world, NINE, DISCOUNT)
    sold(world, LATE, number=2)

    assert flags_of(world, to="2026-03-07T12:00:00Z") == {"negative_price": 1}
    assert flags_of(world, from_="2026-03-07T10:00:00Z", to="2026-03-07T12:00:00Z") is None


@pytest.mark.parametrize(
    ("hours", "flags"),
    [
        ({}, None),
        ({"sat": ("08:00-20:00",)}, {"outside_opening_hours": 1}),
        ({"sat": ("08:00-23:00",)}, None),
        ({"sun": ("08:00-20:00",)}, {"outside_opening_hours": 2}),
    ],
)
def test_receipts_outside_the_opening_hours_are_reported(hours: dict[str, Any], flags: object) -> None:
    world = World(Store(id="1", timezone="UTC", opening_hours=hours))
    line = {"title": "milk", "price": 1.0, "amount": 1, "sku": "3"}
    sold(world, NINE, line)
    sold(world, LATE, line, number=2)

    assert flags_of(world) == flags
    assert flags_of(world, hours="open") in (None, {})


@pytest.mark.parametrize("topic", [topic for topic, source in registered_sources().items() if source.flags])
def test_each_source_with_flags_has_one_view_that_counts_them(topic: str) -> None:
    counted = flag_counts(source_of(topic))

    views = [
        view for view in registered_views() if view.source.topic == topic and counted.keys() <= view.columns.keys()
    ]

    assert len(views) == 1
