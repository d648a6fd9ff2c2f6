"""What is kept of answers is bounded by what it takes, also if requests are long and their answers short."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from master_dataset.registry.stores import Store
from serving_layer.api import response_cache
from serving_layer.keys.key import Caller
from serving_layer.store.readers import Claim, GenerationProgress, Position, StoreProgress
from serving_layer.store.snapshot import ReadSnapshot, VisibleSpeed
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_sql import AskingSql
from views.control.publication import Pointer

SKUS, REQUESTS = 1_000, 8
DAY = "from=2026-11-21&to=2026-11-22"


@pytest.fixture
def world() -> World:
    world = World(Store(id="1", timezone="UTC"))
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return world


def kept_by(ask: Callable[[int], object]) -> float:
    """Bytes that stay in memory for each of `REQUESTS`, after two that warm up."""
    for number in range(2):
        ask(number)
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(2, REQUESTS + 2):
            ask(number)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / REQUESTS
    finally:
        tracemalloc.stop()


def test_a_request_for_many_skus_is_not_kept_with_its_short_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_cache, "MAX_REQUEST_BYTES", 100_000, raising=False)
    asking = Asking(world)

    def ask(number: int) -> None:
        skus = ",".join(str(number * SKUS + each) for each in range(SKUS))
        assert len(asking.response(f"/v1/metrics/sku_units?{DAY}&sku={skus}").content) < 1_000

    assert kept_by(ask) < 20_000


def test_the_progress_of_a_large_chain_is_kept_of_few_snapshots() -> None:
    stores = {str(number): Store(id=str(number), timezone="UTC", tenant="chain") for number in range(5_000)}
    stores["other"] = Store(id="other", timezone="UTC", tenant="other")
    at, chain = datetime(2026, 11, 21, tzinfo=UTC), Caller("a test", "chain", frozenset({"read"}))

    class Speed:
        async def claim(self, _: int) -> Claim:
            return Claim(10**6, {})

        async def progress(self, _: int) -> GenerationProgress:
            return GenerationProgress({id_: StoreProgress(2, at.replace(hour=1)) for id_ in stores}, 0, 10**6)

        async def read_through(self) -> datetime:
            return at

    visible = VisibleSpeed(Speed(), lambda: 0.0)  # type: ignore[arg-type]  # what it reads of one

    async def snapshots(number: int) -> None:
        for position in range(10):
            positions = (Position("pos_transactions", 0, 100 * number + position, at),)
            seen = await visible.of(ReadSnapshot(Pointer(1, at, "m", 1, {}), positions, ()), "v1", stores, chain)
            assert seen.visible is not None
            assert len(seen.visible.stores) == 5_000
            assert len(repr(seen.movement)) < 200  # part of the key of each answer

    with asyncio.Runner() as runner:
        assert kept_by(lambda number: runner.run(snapshots(number))) < 4_000_000  # each snapshot has a million bytes


def test_a_statement_with_many_values_is_not_kept_with_a_table_without_rows(world: World) -> None:
    with AskingSql(world) as asking:

        def ask(number: int) -> None:
            ids = ",".join(f"'{number}-{each}'" for each in range(SKUS))
            assert asking.rows(f"SELECT count(*) FROM sales_day WHERE store IN ({ids})") == [(0,)]  # noqa: S608 - our own ids

        assert kept_by(ask) < 20_000
        assert asking.sessions.cached.currsize > 1_000 * REQUESTS
