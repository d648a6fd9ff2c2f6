"""Day cells change no answer: totals from them are those from the cells of windows, to the last digit."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import Store
from serving_layer.query import answer, day_totals
from serving_layer.query.day_totals import MOST_APART
from serving_layer.store import day_cells
from serving_layer.store.cells import BatchCells
from serving_layer.store.day_cells import MOST_TEXTS, ROWS_AT_ONCE, ROWS_KEPT, DayCells, NamedDays
from tests.support import receipt
from tests.support.chains import FIRST, LAST, Chain, chains
from tests.support.examples import examples
from tests.support.sensors import BEGIN
from tests.support.world import World
from tests.support.world_api import Asking
from tests.support.world_tables import WorldTables
from views.core.cut import floor_to
from views.core.day_cells import DayParts
from views.registry import registered_views

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
FEW = settings(max_examples=examples(75, least=8), deadline=None, phases=PHASES)
MANY = settings(max_examples=1000, deadline=None, phases=PHASES)
METRICS = (
    "net_sales",
    "avg_transaction_value",
    "return_rate",
    "average_unit_retail",
    "total_transactions_count",
    "labor_hours",
    "sku_net_sales",
    "sku_avg_price",
    "sku_attach_rate",
    "till_share",
)
OF_SKU = ("sku_net_sales", "sku_avg_price", "sku_attach_rate")
ZONES = ("UTC", "Asia/Kathmandu", "America/New_York", "Pacific/Apia")


class WithoutDayCells(WorldTables):
    """Tables of which every run is from before there were day cells."""

    async def day_parts(self, run: str, view: str) -> Mapping[date, DayParts]:  # noqa: ARG002 - of any
        return {}


class WithDayCellsAlone(WorldTables):
    """Tables without blocks: whoever reads one fails."""

    async def blocks(
        self,
        view: str,  # noqa: ARG002 - of any
        store: str,
        run: str,  # noqa: ARG002 - likewise
        days: Sequence[date],  # noqa: ARG002 - likewise
    ) -> Mapping[date, str]:
        raise AssertionError(store)


def answered(world: World, tables: type[WorldTables], path: str, query: Mapping[str, object]) -> Any:
    response = Asking(world, tables(world).readers).response(path, **query)  # type: ignore[arg-type]
    return response.status_code, response.json()


class Bounds(NamedTuple):
    """How much is merged, shared, kept and left apart at once."""

    rows: int = ROWS_AT_ONCE
    texts: int = MOST_TEXTS
    kept: int = ROWS_KEPT
    apart: int = MOST_APART


def refuse_difference(
    world: World,
    path: str,
    query: Mapping[str, object],
    bounds: Bounds = Bounds(),  # noqa: B008 - never changed
) -> None:
    """With day cells, within these bounds; of runs without any; and window by window alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(day_cells, "ROWS_AT_ONCE", bounds.rows)
        patch.setattr(day_cells, "MOST_TEXTS", bounds.texts)
        patch.setattr(day_cells, "ROWS_KEPT", bounds.kept)
        patch.setattr(day_totals, "MOST_APART", bounds.apart)
        with_day_cells, of_old_runs = (
            answered(world, tables, path, query) for tables in (WorldTables, WithoutDayCells)
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "takes_day_cells", lambda _: False)
        by_windows = answered(world, WithoutDayCells, path, query)

    assert with_day_cells == by_windows
    assert of_old_runs == by_windows


bounds = st.builds(
    Bounds,
    st.sampled_from([1, 2, 5, ROWS_AT_ONCE]),
    st.sampled_from([0, 2, MOST_TEXTS]),
    st.sampled_from([1, 3, ROWS_KEPT]),
    st.sampled_from([0, 2, MOST_APART]),
)


class Basket(NamedTuple):
    """A receipt of SKUs, perhaps sent twice. `minutes`: when, and how many later it arrives."""

    store: int
    minutes: tuple[int, int]
    skus: list[tuple[str, int]]
    times: int


baskets = st.builds(
    Basket,
    st.integers(0, 3),
    st.tuples(st.integers(0, 4000), st.integers(0, 2000)),
    st.lists(st.tuples(st.sampled_from(["milk", "bread", "tea", "jam"]), st.integers(-3, 9)), min_size=1, max_size=4),
    st.integers(1, 2),
)


def with_baskets(world: World, found: Sequence[Basket]) -> None:
    """In the order of their arrival."""
    for number, basket in enumerate(sorted(found, key=lambda each: sum(each.minutes))):
        happened, late = (timedelta(minutes=each) for each in basket.minutes)
        lines: list[dict[str, object]] = [
            {"title": sku, "sku": sku, "price": 1.25 * (abs(cents) + 1), "amount": 1 if cents >= 0 else -1}
            for sku, cents in basket.skus
        ]
        store = list(world.stores)[basket.store % len(world.stores)]
        value = receipt((BEGIN + happened).isoformat(), lines, number=1000 + number, store=store)
        for time in range(basket.times):
            world.receive(value, BEGIN + happened + late + timedelta(seconds=time))


def compare_totals(data: st.DataObject, chain: Chain) -> None:
    """A question about a history, with and without day cells."""
    opening = {"mon": ("08:00-20:00",), "sat": ("20:00-02:00",), "sun": ("00:00-24:00",)}
    stores = [replace(each, opening_hours=data.draw(st.sampled_from([{}, opening]))) for each in chain.stores]
    world = chain._replace(stores=tuple(stores), cut=None).world()
    with_baskets(world, data.draw(st.lists(baskets, min_size=2, max_size=8)))
    cut = data.draw(st.integers(1000, 5000) | st.none())
    if cut is not None:
        world.rebuild(floor_to(BEGIN + timedelta(minutes=cut), timedelta(minutes=5)))
    if cut is not None and data.draw(st.booleans()):
        world.rebuild("2026-04-03T00:00:00Z")
        if data.draw(st.booleans()):
            world.restore(1)
    moved = data.draw(st.none() | st.none() | st.sampled_from(ZONES))
    if moved:  # the registry has changed since the run wrote its day cells
        world.stores = {id_: replace(store, timezone=moved) for id_, store in world.stores.items()}
    metrics = data.draw(st.lists(st.sampled_from(METRICS), min_size=1, max_size=2, unique=True))
    dimensions = ["", ",currency"] + ([",sku"] if set(metrics) <= set(OF_SKU) else [])
    first = data.draw(st.sampled_from([FIRST, FIRST + timedelta(days=1), FIRST + timedelta(days=2)]))
    query: dict[str, object] = {
        "by": data.draw(st.sampled_from(["total", "store"])) + data.draw(st.sampled_from(dimensions)),
        "grain": data.draw(st.sampled_from(["day", "week", "month", "total"])),
        "from_": data.draw(st.sampled_from([str(first), str(first), f"{first}T12:00:00Z"])),
        "to": str(data.draw(st.sampled_from([LAST, LAST + timedelta(days=1), first + timedelta(days=2)]))),
    }
    if not data.draw(st.integers(0, 3)):
        query["timezone"] = data.draw(st.sampled_from(ZONES))
    if data.draw(st.booleans()) or query["by"] != "total":
        query["sort"] = data.draw(st.sampled_from(["value", "-value", "name"]))
        query["top"] = data.draw(st.integers(1, 3))

    refuse_difference(world, f"/v1/metrics/{','.join(metrics)}", query, data.draw(bounds))


@FEW
@given(data=st.data(), chain=chains())
def test_totals_of_days_are_those_of_their_windows(data: st.DataObject, chain: Chain) -> None:
    compare_totals(data, chain)


@pytest.mark.nightly
@MANY
@given(data=st.data(), chain=chains())
def test_totals_of_days_are_those_of_their_windows_in_many_histories(data: st.DataObject, chain: Chain) -> None:
    compare_totals(data, chain)


@FEW
@given(
    chain=chains(),
    metric=st.sampled_from(["net_sales", "total_transactions_count", "avg_transaction_value"]),
    grain=st.sampled_from(["day", "month", "total"]),
    attributes=st.sampled_from(["as_then", "current"]),
    share=st.sampled_from(["true", "false"]),
)
def test_groups_of_days_are_those_of_their_windows(
    chain: Chain, metric: str, grain: str, attributes: str, share: str
) -> None:
    query = {"by": "group:region", "attributes": attributes, "grain": grain, "from_": str(FIRST), "to": str(LAST)}

    world = chain.world()
    world.rebuild("2026-03-30T00:00:00Z")
    refuse_difference(world, f"/v1/metrics/{metric}", {**query, "share": share})


@pytest.mark.parametrize("days", [1, 2, 40])
def test_days_without_cells_are_read_as_no_rows(days: int) -> None:
    world = World(Store(id="1", timezone="UTC"))
    readers = WorldTables(world).readers
    cells = DayCells(BatchCells(readers.published, readers.batch), readers.batch)
    view = registered_views()[0]
    named = NamedDays(view, [(FIRST + timedelta(days=day), "a run", DayParts((), ())) for day in range(days)], ())

    async def rows() -> list[int]:
        return [each.rows async for each in cells.slices(named)]

    assert asyncio.run(rows()) == [0]


@FEW
@given(chain=chains(), grain=st.sampled_from(["day", "week", "total"]))
def test_whole_days_need_no_block(chain: Chain, grain: str) -> None:
    query = {"by": "total", "grain": grain, "from_": str(FIRST), "to": str(LAST)}

    world = chain.world()
    world.rebuild("2026-03-30T00:00:00Z")
    status, _ = answered(world, WithDayCellsAlone, "/v1/metrics/total_transactions_count", query)

    assert status == 200
