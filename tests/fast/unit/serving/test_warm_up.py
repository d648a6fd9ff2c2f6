"""A publication is read ahead, so that the first request waits no longer than later ones; and once for all readers."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from deploy.services.api import ask_itself
from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.stores import Store
from serving_layer.keys.key import OPERATOR
from serving_layer.query.resolve import MetricRequest, MetricsRequest
from serving_layer.query.stores import PageRequest
from serving_layer.store import day_cells
from serving_layer.store.day_cells import NamedDays
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_tables import WorldTables
from views.core.day_cells import DayParts
from views.registry import view_named

FIRST = datetime.fromisoformat("2026-11-10T09:00:00Z")
TOTAL = MetricRequest("net_sales", (), "2026-11-10", "2026-11-20", by=("total",))
EACH = MetricRequest("net_sales", (), "2026-11-10", "2026-11-20", grain="15m")


class CountingTables(WorldTables):
    """Counts what is read of a publication. `fails`: Cassandra does not answer."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.reads, self.fails = Counter[str](), False

    async def manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        await self._counted("manifest", name)
        return await super().manifest(name)

    async def stores_of(self, run: str, view: str, month: date) -> Mapping[date, frozenset[str]]:
        await self._counted("stores_of", view)
        return await super().stores_of(run, view, month)

    async def day_parts(self, run: str, view: str) -> Mapping[date, DayParts]:
        await self._counted("day_parts", view)
        return await super().day_parts(run, view)

    async def day_cells(self, run: str, view: str, day: date) -> Mapping[str, bytes]:
        await self._counted("day_cells", f"{view} {day}")
        return await super().day_cells(run, view, day)

    async def _counted(self, what: str, of: str) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise CassandraUnavailableError("Cassandra does not answer.", do="galatea status")
        self.reads[f"{what} {of}"] += 1


@pytest.fixture
def tables() -> CountingTables:
    """Ten days of two stores, published."""
    world = World(*(Store(id=each, timezone="UTC") for each in "12"))
    sell(world, range(10))
    world.rebuild(FIRST + timedelta(days=10))
    return CountingTables(world)


def sell(world: World, days: range) -> None:
    for day in days:
        for store in "12":
            at = FIRST + timedelta(days=day)
            value = receipt(f"{at:%Y-%m-%dT%H:%M:%SZ}", minor=100 + day, number=day, store=store)
            world.receive(value, at)


async def asked(asking: Asking, request: MetricRequest = TOTAL) -> bytes:
    answers = asking.answers
    version = await answers.read_version(request, OPERATOR)
    return await answers.metrics(MetricsRequest((request,), PageRequest()), version, OPERATOR)


@pytest.mark.parametrize("question", [TOTAL, EACH])
def test_after_a_warm_up_an_answer_reads_only_blocks_of_the_publication(
    tables: CountingTables, question: MetricRequest
) -> None:
    asking = Asking(tables.world, tables.readers)

    async def scenario() -> tuple[Counter[str], bytes]:
        await asking.answers.warm_up(10)
        before = tables.reads.copy()
        body = await asked(asking, question)
        return tables.reads - before, body

    more, body = asyncio.run(scenario())

    assert more == Counter()
    assert tables.reads["day_cells sales 2026-11-10"] == 1
    assert body == asyncio.run(asked(Asking(tables.world), question))


def test_which_stores_a_year_has_blocks_for_is_read_once(tables: CountingTables) -> None:
    asking = Asking(tables.world, tables.readers)
    year = replace(EACH, start="2026-01-01", end="2026-12-31", grain="day")

    async def scenario() -> Counter[str]:
        await asked(asking, year)
        before = tables.reads.copy()
        await asked(asking, replace(year, grain="15m", start="2026-11-01", end="2026-11-20"))
        return tables.reads - before

    assert "stores_of sales" not in asyncio.run(scenario())
    assert tables.reads["stores_of sales"] == 1


def test_the_next_publication_is_read_ahead_when_it_is_first_seen(tables: CountingTables) -> None:
    asking = Asking(tables.world, tables.readers)

    async def scenario() -> None:
        await asking.answers.warm_up(10)
        sell(tables.world, range(10, 12))
        tables.world.rebuild(FIRST + timedelta(days=12))
        await asking.answers.read_version(TOTAL, OPERATOR)
        for _ in range(1000):
            if tables.reads["day_cells sales 2026-11-10"] == 2:
                return
            await asyncio.sleep(0.01)

    asyncio.run(scenario())

    assert tables.reads["day_cells sales 2026-11-21"] == 1


def test_only_so_many_of_the_newest_days_are_read_ahead(
    tables: CountingTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_cells, "BYTES_AHEAD", 1)

    asyncio.run(Asking(tables.world, tables.readers).answers.warm_up(10))

    assert tables.reads["day_cells sales 2026-11-19"] == 1
    assert tables.reads["day_cells sales 2026-11-10"] == 0


def test_what_many_runs_wrote_is_read_side_by_side() -> None:
    """A year of small rebuilds has a run for each day."""
    days = [(FIRST.date() + timedelta(days=number), f"run-{number}") for number in range(day_cells.READS_AT_ONCE)]

    class Runs:
        async def runs(self, *_: object) -> list[tuple[date, str]]:
            return days

    class Batch:
        def __init__(self) -> None:
            self.begun, self.together = 0, asyncio.Event()

        async def day_parts(self, run: str, view: str) -> Mapping[date, DayParts]:
            assert view == "sales"
            self.begun += 1
            if self.begun == len(days):
                self.together.set()
            await asyncio.wait_for(self.together.wait(), 5)
            return {day: DayParts() for day, own in days if own == run}

    async def scenario() -> NamedDays:
        reader: Any = day_cells.DayCells(Runs(), Batch())  # type: ignore[arg-type]  # as much of both as is read
        named: NamedDays = await reader.named("manifest", view_named("sales"), 0, 1)
        return named

    assert [(day, run) for day, run, _ in asyncio.run(scenario()).parts] == days


def test_a_warm_up_that_fails_leaves_the_error_to_the_request(tables: CountingTables) -> None:
    asking = Asking(tables.world, tables.readers)
    tables.fails = True

    async def scenario() -> bytes:
        await asking.answers.warm_up(10)
        with pytest.raises(CassandraUnavailableError):
            await asked(asking)
        tables.fails = False
        return await asked(asking)

    assert asyncio.run(scenario()) == asyncio.run(asked(Asking(tables.world)))


@pytest.mark.parametrize("fails", [False, True])
def test_a_process_asks_itself_before_anybody_can_and_starts_whatever_the_answer(
    tables: CountingTables, *, fails: bool
) -> None:
    asking = Asking(tables.world, tables.readers)
    tables.fails = fails

    asyncio.run(ask_itself(asking.app, OPERATOR_KEY))

    assert {tables.reads["day_parts sales"] > 0, tables.reads["stores_of sales"] > 0} == {not fails}


@pytest.mark.parametrize("question", [TOTAL, EACH])
def test_requests_that_arrive_together_read_a_publication_once(tables: CountingTables, question: MetricRequest) -> None:
    asking = Asking(tables.world, tables.readers)

    async def scenario() -> list[Any]:
        others = (replace(question, metric=each) for each in ("gross_sales", "returns_value"))
        return await asyncio.gather(*(asked(asking, each) for each in (question, *others)))

    assert len(set(asyncio.run(scenario()))) == 3
    assert set(tables.reads.values()) == {1}
