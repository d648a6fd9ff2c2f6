"""Large merges leave the event loop to other requests, and answer the same."""

import asyncio
import threading
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import WEEKDAYS, Store
from serving_layer import off_loop as off_loop_module
from serving_layer import timeline as timeline_module
from serving_layer.off_loop import CELLS_AT_ONCE, long_answer, off_loop
from serving_layer.query import answer as answer_module
from serving_layer.query import cells as cells_query
from serving_layer.query import context as context_module
from serving_layer.query import day_event_flags, day_totals, periods_compared
from serving_layer.query import fetch as fetch_module
from serving_layer.query import resolve as resolve_module
from serving_layer.query.day_totals import DayTotals
from serving_layer.query.fetch import StoreData
from serving_layer.query.groups import Totals
from serving_layer.store import cells as cells_module
from tests.support import World, receipt
from tests.support.world_api import Asking

PATIENCE_SECONDS = 30.0
QUESTIONS: dict[str, dict[str, str]] = {
    "/v1/metrics/sku_net_sales": {"by": "sku", "grain": "day", "context": "weather"},
    "/v1/metrics/sku_net_sales,sku_units": {"by": "total,sku", "grain": "day"},
    "/v1/metrics/sku_units": {"by": "total,sku", "grain": "day", "sort": "-value", "top": "3"},
    "/v1/metrics/net_sales": {"by": "total", "grain": "15m", "compare": "previous_week"},
    "/v1/views/sales_by_sku/cells": {"store": "1"},
}
DAYS = {"from": "2026-11-20", "to": "2026-11-22"}


def chain() -> World:
    """Twenty SKUs in each of both layers."""
    world = World()
    for number in range(40):
        line = {"title": "thing", "price": 1 + number, "amount": 1, "sku": str(number % 20)}
        at = f"2026-11-2{number // 20}T09:{number % 60:02}:00Z"
        world.receive(receipt(at, [line], number=number), at)
        if number == 19:
            world.rebuild("2026-11-21T00:00:00Z")
    return world


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the threads in which cells are merged."""
    found: set[str] = set()

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            found.add(threading.current_thread().name.rpartition("_")[0] or "loop")
            return call(*arguments)

        return noted

    for module, name in (
        (cells_module, "merge_cells"),
        (cells_module, "read_block"),
        (answer_module, "aggregate"),
        (answer_module, "render"),
        (answer_module, "render_groups"),
        (cells_query, "_encoded"),
        (resolve_module, "resolve"),
        (timeline_module, "point_labels"),
        (day_totals, "_currencies"),
        (fetch_module, "comparison_until"),
        (context_module, "_rows_of"),
    ):
        monkeypatch.setattr(module, name, noting(getattr(module, name)))
    return found


@pytest.mark.parametrize("path", QUESTIONS)
def test_many_cells_are_merged_in_a_thread_and_few_at_once(
    path: str, threads: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = DAYS | QUESTIONS[path]
    few = Asking(chain()).request("GET", path, params=query)
    assert (few.status_code, threads) == (200, {"loop"})

    threads.clear()
    monkeypatch.setattr(off_loop_module, "CELLS_AT_ONCE", -1)
    many = Asking(chain()).request("GET", path, params=query)

    assert threads == {"merge"}
    assert many.content == few.content


def test_the_event_loop_goes_on_while_a_large_piece_is_computed() -> None:
    gone_on = threading.Event()

    async def answered() -> tuple[bool, str]:
        piece = asyncio.ensure_future(off_loop(CELLS_AT_ONCE + 1, lambda: gone_on.wait(PATIENCE_SECONDS)))
        await asyncio.sleep(0)
        small = await off_loop(CELLS_AT_ONCE, lambda: threading.current_thread().name)
        gone_on.set()
        return await piece, small

    assert asyncio.run(answered()) == (True, threading.current_thread().name)


@pytest.mark.parametrize("cells", [1, CELLS_AT_ONCE + 1])
def test_what_a_piece_raises_is_raised(cells: int) -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(off_loop(cells, lambda: 1 / 0))


def test_nobody_waits_for_a_piece_of_a_long_answer() -> None:
    may_end = threading.Event()

    async def work() -> bool:
        with long_answer():
            long = asyncio.ensure_future(off_loop(CELLS_AT_ONCE + 1, lambda: may_end.wait(PATIENCE_SECONDS)))
            await asyncio.sleep(0)
        try:
            return await asyncio.wait_for(off_loop(CELLS_AT_ONCE + 1, lambda: not may_end.is_set()), PATIENCE_SECONDS)
        finally:
            may_end.set()
            await long

    assert asyncio.run(work())


@pytest.mark.parametrize(("grain", "thread"), [("hour", "loop"), ("15m", "merge")])
def test_many_points_are_added_up_in_a_thread_even_without_cells(
    monkeypatch: pytest.MonkeyPatch, grain: str, thread: str
) -> None:
    world, found = World(Store(id="1", timezone="Asia/Tokyo"), Store(id="2", timezone="America/New_York")), set[str]()
    add = Totals.add

    def noted(self: Totals, data: StoreData) -> None:
        found.add(threading.current_thread().name.rpartition("_")[0] or "loop")
        add(self, data)

    monkeypatch.setattr(Totals, "add", noted)
    Asking(world).body("/v1/metrics/net_sales", from_="2026-11-01", to="2026-11-13", by="total", grain=grain)

    assert found == {thread}


@pytest.mark.parametrize(("days", "thread"), [(3, "loop"), (1_000, "merge-long")])
@pytest.mark.parametrize(
    "of", [{"by": "total", "compare": "previous_week"}, {"compare": "previous_week"}, {"by": "total"}]
)
def test_open_hours_of_many_days_are_found_in_a_thread_even_without_cells(
    monkeypatch: pytest.MonkeyPatch, of: dict[str, str], days: int, thread: str
) -> None:
    hours = dict.fromkeys(WEEKDAYS, ("08:00-20:00",))
    world, found = World(Store(id="1", timezone="UTC", opening_hours=hours)), set[str]()
    at = "2026-11-21T09:00:00Z"
    world.receive(receipt(at), at)
    world.rebuild("2026-11-22T00:00:00Z")
    first = date(2026, 11, 22) - timedelta(days=days)

    for module, name in ((periods_compared, "open_spans"), (day_event_flags, "open_periods")):
        call = getattr(module, name)

        def noted(*arguments: Any, call: Callable[..., Any] = call) -> Any:
            found.add(threading.current_thread().name.rpartition("_")[0] or "loop")
            return call(*arguments)

        monkeypatch.setattr(module, name, noted)
    periods_compared._open_seconds.cache_clear()  # noqa: SLF001 - what another test has found
    day_event_flags.open_intervals.cache_clear()
    Asking(world).body("/v1/metrics/net_sales", from_=first.isoformat(), to="2026-11-22", grain="total", **of)

    assert found == {thread}


@pytest.mark.parametrize(("stores", "threads_of"), [(1, {"loop"}), (12, {"merge", "merge-long"})])
def test_points_of_many_calendars_are_found_in_a_thread_however_few_have_cells(
    monkeypatch: pytest.MonkeyPatch, stores: int, threads_of: set[str]
) -> None:
    calendars = [Store(id=str(number), timezone="UTC", day_starts_at=f"{number:02}:00") for number in range(stores)]
    world, found = World(*calendars), set[str]()
    at = "2026-11-21T12:00:00Z"
    world.receive(receipt(at, store="0"), at)
    world.rebuild("2026-11-22T00:00:00Z")
    finds = [(DayTotals, "_inspect"), (DayTotals, "_fresh"), (DayTotals, "_locate"), (day_totals, "_group")]
    for owner, name in [*finds, (resolve_module, "_find_points")]:
        call = getattr(owner, name)

        def noted(*arguments: Any, call: Callable[..., Any] = call) -> Any:
            found.add(threading.current_thread().name.rpartition("_")[0] or "loop")
            return call(*arguments)

        monkeypatch.setattr(owner, name, noted)
    Asking(world).body("/v1/metrics/net_sales", from_="2025-11-21", to="2026-11-22", by="total")

    assert found == threads_of
