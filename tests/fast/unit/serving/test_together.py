"""Stores are read together; the answer is the same whatever stores are read together."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from master_dataset.registry.stores import GroupVersion, Sensor, Store
from serving_layer.query import answer
from serving_layer.query.fetch import StoreData, fetch
from serving_layer.store.cells import STORES_TOGETHER
from tests.support import World, receipt
from tests.support.sensors import source_of
from tests.support.world_api import Asking

ZONES = ("Europe/Bratislava", "Asia/Tokyo", "America/Los_Angeles")
HOURS = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), ("08:00-20:00",))
STORES = [
    Store(
        id=str(number),
        timezone=ZONES[number % 3],
        day_starts_at="04:00" if number % 4 == 0 else "00:00",
        opening_hours=HOURS if number % 2 else {},
        sensors=(Sensor("door", "people_counts", "A"),) if number % 2 else (),
        groups=(GroupVersion(None, {"region": "West" if number % 5 else "East"}),),
    )
    for number in range(11)
]
SEVERAL = "net_sales,conversion_rate,traffic_in,avg_transaction_value,coverage"
QUESTIONS = (
    f"{SEVERAL}?range=today&by=total&grain=total&compare=previous_week",
    f"{SEVERAL}?range=last_7_days&by=total&grain=day&compare=previous_period",
    "net_sales?range=yesterday&by=total&grain=hour&compare=previous_week&hours=open",
    "net_sales?range=last_7_days&by=group:region&grain=total&compare=previous_year",
    "net_sales?range=last_7_days&grain=total&sort=-change&top=3&compare=previous_week",
    f"{SEVERAL}?range=last_7_days&grain=day&compare=previous_week",
)


def visitors(at: str, store: str, number: int) -> bytes:
    """Counted in a quarter of an hour."""
    counted = {"operation_id": store, "sensor_id": "door", "line": "A", "people_in": number, "people_out": 2}
    return json.dumps(counted | {"happened_at": at, "interval_ms": 900_000}).encode()


@pytest.fixture(scope="module")
def world() -> World:
    """Receipts and visitors of two weeks; those of the last day are in the speed layer alone."""
    world = World(*STORES)
    for day in range(7, 22):
        if day == 21:
            world.rebuild("2026-11-21T00:30:00Z")
        for number, store in enumerate(STORES):
            for hour in range(0, 20, 3 + number % 3):
                at = f"2026-11-{day:02}T{hour:02}:10:00Z"
                value = receipt(at, minor=100 * day + number, store=store.id, number=10_000 * number + 100 * day + hour)
                world.receive(value, at)
                if store.sensors:
                    counted = visitors(at.replace(":10:", ":00:"), store.id, 3 + number)
                    world.receive(counted, at.replace(":10:", ":15:"), source_of("people_counts"))
    world.pass_time(datetime(2026, 11, 21, 20, 7, tzinfo=UTC))
    return world


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_an_answer_does_not_depend_on_which_stores_are_read_together(
    world: World, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for first, most, cells in ((1, 1, 1), (2, 3, 40), (50, 50, 100_000)):
        monkeypatch.setattr(answer, "FIRST_TOGETHER", first)
        monkeypatch.setattr(answer, "STORES_TOGETHER", most)
        monkeypatch.setattr(answer, "CELLS_TOGETHER", cells)
        monkeypatch.setattr(answer, "PIECE", cells)
        found.append(Asking(world).body(f"/v1/metrics/{question}"))
    assert found[0] == found[1] == found[2]


def test_what_is_read_together_is_bounded_by_all_that_is_read_of_a_store() -> None:
    together = answer.Together(range(200), answer.FIRST_TOGETHER)
    sizes = [len(next(together))]
    for cells in (8_100, 8_100, 100):
        together.note([cells] * sizes[-1])
        sizes.append(len(next(together)))
    assert sizes == [answer.FIRST_TOGETHER, 12, 12, STORES_TOGETHER]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("net_sales?range=yesterday&grain=day", len(STORES)),
        ("net_sales?range=yesterday&by=total&grain=hour", len(STORES)),
        ("net_sales?range=last_7_days&grain=day", answer.FIRST_TOGETHER),
        ("sku_units?range=yesterday&by=sku&grain=day", answer.FIRST_TOGETHER),
        ("traffic_in?range=yesterday&grain=day", answer.FIRST_TOGETHER),
        ("net_sales?range=yesterday&grain=day&compare=previous_week", answer.FIRST_TOGETHER),
    ],
)
def test_only_stores_that_have_few_cells_for_certain_are_all_read_at_once(
    world: World, question: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    async def counted(*of: Any) -> list[StoreData]:
        read.append(len(of[1]))
        return await fetch(*of)

    monkeypatch.setattr(answer, "fetch", counted)
    Asking(world).body(f"/v1/metrics/{question}")
    assert read[0] == first
