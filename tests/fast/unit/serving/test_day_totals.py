"""Totals from day cells stay within bounds: of states, of objects, and of reads that run at once."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date, datetime

import pyarrow as pa
import pytest

from master_dataset.registry.stores import Store
from serving_layer.query import day_totals
from serving_layer.query.day_columns import MergedStates
from serving_layer.store import cells, day_cells
from serving_layer.store.day_cells import BYTES_PER_TEXT, DayTable, Vocabulary
from serving_layer.store.readers import SpeedBlock
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_tables import WorldTables
from views.core.day_cells import END, START

SALES = "/v1/metrics/sku_net_sales"
DAYS = {"from_": "2026-03-23", "to": "2026-03-26", "grain": "day", "by": "total,sku"}


@pytest.fixture
def asking() -> Asking:
    """Ten SKUs on each of three days."""
    world = World(Store(id="1", timezone="UTC"))
    for number, day in enumerate(("23", "24", "25")):
        at = f"2026-03-{day}T12:00:00Z"
        lines: list[dict[str, object]] = [
            {"title": sku, "sku": sku, "price": 1 + place, "amount": 1} for place, sku in enumerate("abcdefghij")
        ]
        world.receive(receipt(at, lines, store="1", number=number), at)
    world.rebuild("2026-03-27T00:00:00Z")
    return Asking(world)


def test_the_top_of_more_series_than_may_be_built_is_answered(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving_layer.query.groups.MOST_POINTS", 20)

    series = asking.body(SALES, **DAYS, top=1)["series"]

    assert [[point["value"] for point in each["points"]] for each in series] == [[10.0] * 3, [45.0] * 3]


def test_points_are_counted_before_any_is_built(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(of: MergedStates) -> None:
        raise AssertionError(of)

    monkeypatch.setattr("serving_layer.query.groups.MOST_POINTS", 20)
    monkeypatch.setattr(MergedStates, "points", unexpected)

    assert asking.response(SALES, **DAYS).status_code == 422


@pytest.mark.parametrize(("rows", "kept", "apart"), [(1, 1, 0), (1, 1000, 0), (7, 1, 1000), (1000, 1000, 1000)])
def test_states_that_are_merged_by_columns_are_limited(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, rows: int, kept: int, apart: int
) -> None:
    monkeypatch.setattr(day_cells, "ROWS_AT_ONCE", rows)
    monkeypatch.setattr(day_cells, "ROWS_KEPT", kept)
    monkeypatch.setattr(day_totals, "MOST_APART", apart)
    monkeypatch.setattr(day_totals, "MOST_MERGED", 29)

    assert asking.response(SALES, **DAYS, top=1).status_code == 422
    assert asking.response(SALES, **DAYS | {"grain": "total"}, top=1).status_code == 200


def test_a_text_is_counted_with_the_day_that_brought_it() -> None:
    skus = pa.chunked_array([pa.array([f"sku {number}" for number in range(1000)]).dictionary_encode()])
    numbers = pa.array(range(1000), pa.int64())
    table = pa.table({"d0": skus, START: numbers, END: numbers, "s0": numbers})
    vocabularies = {"d0": Vocabulary()}

    first, second = (DayTable.of(table, vocabularies) for _ in range(2))

    assert first.size - second.size == 1001 * BYTES_PER_TEXT  # and None


def test_few_statements_read_speed_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(*(Store(id=str(number), timezone="UTC") for number in range(400)))
    world.receive(receipt("2026-03-23T12:00:00Z", minor=100, store="1"), "2026-03-23T12:00:00Z")
    running: list[int] = []
    most: list[int] = []

    class Counting(WorldTables):
        async def rows_of(
            self, view: str, stores: Sequence[str], received_day: date, generation: int, cut: datetime
        ) -> Mapping[str, Sequence[SpeedBlock]]:
            running.append(1)
            most.append(len(running))
            await asyncio.sleep(0)
            running.pop()
            return await super().rows_of(view, stores, received_day, generation, cut)

    monkeypatch.setattr(cells, "READS_AT_ONCE", 3)
    body = Asking(world, Counting(world).readers).body(
        "/v1/metrics/net_sales", from_="2026-03-23", to="2026-03-24", by="total"
    )

    assert body["series"][0]["points"][0]["value"] == 1.0
    assert max(most) == 3
