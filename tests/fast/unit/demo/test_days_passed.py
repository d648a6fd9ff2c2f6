"""The oracle of the demo counts days as the API does while it is another day in the east than in the west."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lab.demo.journey import ZONES
from lab.demo.top_products import DAYS, RANGE, days_passed
from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking

NOON, NIGHT = datetime(2026, 11, 24, 17, tzinfo=UTC), datetime(2026, 11, 24, 6, 30, tzinfo=UTC)
"""In the night, New York and Chicago have Tuesday, and Denver and Los Angeles Monday."""


@pytest.mark.parametrize(
    ("loaded_at", "now", "passed"),
    [
        (NOON, NOON, [-1, -1, -1, -1]),
        (NIGHT, NIGHT, [-2, -2, -1, -1]),
        (NIGHT, NOON, [-1, -1, 0, 0]),
        (NOON - timedelta(days=1), NIGHT, [-1, -1, -1, -1]),
    ],
)
def test_the_days_of_the_api_end_where_the_oracle_says(loaded_at: datetime, now: datetime, passed: list[int]) -> None:
    assert days_passed(loaded_at, now, ZONES) == passed

    world = World(*(Store(id=zone, timezone=zone) for zone in ZONES))
    for zone in ZONES:
        day = now - timedelta(days=20)
        world.receive(receipt(day.isoformat().replace("+00:00", "Z"), store=zone), day)
    world.rebuild(now - timedelta(hours=1))
    world.pass_time(now)
    query = {**RANGE, "grain": "total", "by": "total"}
    body = Asking(world).body("/v1/metrics/net_sales", **query)
    [point] = body["series"][0]["points"]
    first = date.fromisoformat(point["date"])
    for zone, number in zip(ZONES, passed, strict=True):
        last_day = loaded_at.astimezone(ZoneInfo(zone)).date()
        assert first + timedelta(days=DAYS - 1) == last_day + timedelta(days=number)
