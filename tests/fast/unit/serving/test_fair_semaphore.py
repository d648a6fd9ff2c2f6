"""One name never has all places, and a name that has none is next."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from urllib.parse import parse_qsl

import pytest

from master_dataset.registry.stores import Sensor, Store
from serving_layer import service
from serving_layer.errors import TooBusyError
from serving_layer.fair_semaphore import BoundedFairSemaphore, FairSemaphore
from serving_layer.keys.key import Caller
from serving_layer.query import answer
from serving_layer.query.resolve import MetricRequest, MetricsRequest
from serving_layer.query.stores import PageRequest
from serving_layer.service import LONG_OF_TENANT
from serving_layer.store.readers import RawReceiptPage
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_tables import WorldTables

SOLD_AT = datetime.fromisoformat("2026-11-10T09:00:00Z")


def test_a_name_leaves_places_to_others_and_is_forgotten() -> None:
    async def work() -> None:
        semaphore, held, done = FairSemaphore(2, 1), asyncio.Event(), []

        async def hold(name: str) -> None:
            async with semaphore.hold(name):
                await held.wait()
                done.append(name)

        greedy = [asyncio.ensure_future(hold("greedy")) for _ in range(3)]
        await asyncio.sleep(0)
        async with semaphore.hold("other"):
            assert len(semaphore) == 2
            assert done == []
        held.set()
        await asyncio.gather(*greedy)

        assert len(done) == 3
        assert len(semaphore) == 0

    asyncio.run(work())


def test_whoever_gives_up_waiting_leaves_no_place_taken() -> None:
    taken = []

    async def work() -> None:
        semaphore = FairSemaphore(1, 1)
        async with semaphore.hold("a"):
            waiting = [asyncio.ensure_future(semaphore.hold(name).__aenter__()) for name in ("a", "b")]
            await asyncio.sleep(0)
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        async with semaphore.hold("b"):
            taken.append("b")

    asyncio.run(work())
    assert taken == ["b"]


def test_a_name_that_holds_nothing_is_next_however_many_wait() -> None:
    """Two tenants fill all places, and have more waiting."""
    began: list[str] = []

    async def work() -> None:
        semaphore, ends = FairSemaphore(4, 3), asyncio.Semaphore(0)

        async def run(name: str) -> None:
            async with semaphore.hold(name):
                began.append(name)
                await ends.acquire()

        tasks = [asyncio.ensure_future(run(name)) for name in [*"aaaaaa", *"bbbbbb"]]
        await asyncio.sleep(0)
        tasks.append(asyncio.ensure_future(run("c")))
        await asyncio.sleep(0)
        assert began == [*"aaab"]
        for _ in tasks:
            ends.release()
        await asyncio.gather(*tasks)

    asyncio.run(work())
    assert began[4] == "c"
    assert sorted(began) == sorted("aaaaaabbbbbbc")


@pytest.mark.parametrize("is_given", [False, True])
def test_who_gives_up_passes_the_place_on(*, is_given: bool) -> None:
    """Also one who is given it at the same moment."""
    got: list[str] = []

    async def work() -> None:
        semaphore = FairSemaphore(1, 1)
        holding, giving_up = semaphore.hold("a"), asyncio.ensure_future(semaphore.hold("b").__aenter__())
        await holding.__aenter__()
        await asyncio.sleep(0)

        async def wait() -> None:
            async with semaphore.hold("c"):
                got.append("c")

        last = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        if is_given:
            await holding.__aexit__(None, None, None)
        giving_up.cancel()
        if not is_given:
            await holding.__aexit__(None, None, None)
        await last

    asyncio.run(asyncio.wait_for(work(), 5))
    assert got == ["c"]


class PausedTables(WorldTables):
    """Reading the blocks of a store waits until it may go on."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.reading: set[str] = set()
        self.may_go_on = asyncio.Event()

    async def blocks(self, view: str, store: str, run: str, days: Sequence[date]) -> Mapping[date, str]:
        if store.startswith("long"):
            self.reading.add(store)
            await self.may_go_on.wait()
        return await super().blocks(view, store, run, days)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


def test_long_answers_of_a_tenant_wait_for_each_other_and_others_do_not() -> None:
    long, other = [f"long-{number}" for number in range(5)], "longer-0"
    world = World(*(Store(id=each, timezone="UTC", tenant=each.partition("-")[0]) for each in [*long, other, "short"]))
    for number, store in enumerate([*long, other, "short"]):
        world.receive(receipt("2026-11-10T09:00:00Z", minor=100, number=number, store=store), SOLD_AT)
    world.rebuild(SOLD_AT + timedelta(days=1))
    tables = PausedTables(world)
    asking = Asking(world, tables.readers)

    async def asked(store: str, start: str) -> bytes:
        caller = Caller(f"key of {store}", store.partition("-")[0], frozenset({"read"}))
        request = MetricRequest("net_sales", (store,), start, "2026-11-11", grain="15m")
        version = await asking.answers.read_version(request, caller)
        return await asking.answers.metrics(MetricsRequest((request,), PageRequest()), version, caller)

    async def scenario() -> tuple[set[str], list[bytes]]:
        waiting = [asyncio.ensure_future(asked(each, "2025-10-10")) for each in long]
        await until(lambda: len(tables.reading) >= LONG_OF_TENANT)
        waiting.append(asyncio.ensure_future(asked(other, "2025-10-10")))
        await until(lambda: other in tables.reading)
        bodies = [await asked("short", "2026-11-10")]
        reading = set(tables.reading)
        tables.may_go_on.set()
        return reading, [*bodies, *await asyncio.gather(*waiting)]

    reading, bodies = asyncio.run(scenario())

    assert len(reading) == LONG_OF_TENANT + 1
    assert tables.reading == {*long, other}
    assert all(b'"value":1.0' in body for body in bodies)


def test_a_tenant_reads_one_page_of_receipts_at_a_time_and_others_do_not_wait_for_it() -> None:
    """Cassandra may have to read a hundred megabytes for a page."""
    stores = [Store(id=f"{tenant}-{number}", timezone="UTC", tenant=tenant) for tenant in "ab" for number in range(3)]
    asking = Asking(World(*stores))
    reading, may_go_on = list[str](), asyncio.Event()

    async def receipts(store: str, *_: object) -> RawReceiptPage:
        reading.append(store)
        await may_go_on.wait()
        return RawReceiptPage([], has_more=False)

    asking.answers.readers.receipts.receipts = receipts  # type: ignore[method-assign, assignment]

    async def asked(store: str) -> RawReceiptPage:
        caller = Caller("a key", store[0], frozenset({"read"}))
        return await asking.answers.receipts(caller, store, SOLD_AT.date(), None, 100)

    async def scenario() -> list[str]:
        waiting = [asyncio.ensure_future(asked(each.id)) for each in stores]
        await until(lambda: len(reading) >= 2)
        await asyncio.sleep(0.05)
        at_once = list(reading)
        may_go_on.set()
        await asyncio.gather(*waiting)
        return at_once

    assert [store[0] for store in asyncio.run(scenario())] == ["a", "b"]
    assert sorted(reading) == [each.id for each in stores]


def test_long_answers_that_nobody_may_wait_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "LONG_ASKED", 1)
    world = World(*(Store(id=each, timezone="UTC", tenant="long") for each in ("long-0", "long-1")))
    world.receive(receipt("2026-11-10T09:00:00Z", minor=100, store="long-0"), SOLD_AT)
    world.rebuild(SOLD_AT + timedelta(days=1))
    tables = PausedTables(world)
    asking = Asking(world, tables.readers)
    caller = Caller("a key", "long", frozenset({"read"}))

    async def asked(store: str) -> bytes:
        request = MetricRequest("net_sales", (store,), "2025-10-10", "2026-11-11", grain="15m")
        version = await asking.answers.read_version(request, caller)
        return await asking.answers.metrics(MetricsRequest((request,), PageRequest()), version, caller)

    async def scenario() -> None:
        first = asyncio.ensure_future(asked("long-0"))
        await until(lambda: bool(tables.reading))
        with pytest.raises(TooBusyError, match="1 long answers of this tenant"):
            await asked("long-1")
        tables.may_go_on.set()
        await first
        await asked("long-1")

    asyncio.run(scenario())


def test_an_answer_holds_one_turn_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is about whole days, some of which only windows can answer."""
    monkeypatch.setattr(answer, "LONG", 1)
    held: list[str | None] = []

    @asynccontextmanager
    async def slot(_semaphore: BoundedFairSemaphore, tenant: str | None) -> AsyncIterator[None]:
        held.append(tenant)
        yield

    monkeypatch.setattr(BoundedFairSemaphore, "hold", slot)
    Asking(two_stores()).body(
        "/v1/metrics/net_sales", from_="2026-11-10", to="2026-11-11", by="total", grain="day", timezone="Asia/Kolkata"
    )

    assert len(held) == 1


def two_stores() -> World:
    """Both have a camera, and sold something on two days of Asia/Kolkata, which are one in UTC."""
    camera = Sensor("door", "people_counts")
    world = World(*(Store(id=each, timezone="UTC", sensors=(camera,)) for each in ("1", "2")))
    for number, store in enumerate(("1", "1", "2", "2")):
        at = ("2026-11-10T09:00:00Z", "2026-11-10T20:00:00Z")[number % 2]
        world.receive(receipt(at, minor=100, number=number, store=store), at)
    world.rebuild(SOLD_AT + timedelta(days=1))
    return world


@pytest.mark.parametrize(
    ("question", "is_long"),
    [
        ("metrics/net_sales?by=total&grain=day", False),  # from day cells
        ("metrics/net_sales?by=total&grain=day&timezone=Asia/Kolkata", True),  # not their days
        ("metrics/net_sales,gross_sales?by=total&grain=day", False),
        ("metrics/net_sales,conversion_rate?by=total&grain=day", True),  # all by windows, as one has to
        ("metrics/net_sales?by=total&grain=hour", True),
        ("index/net_sales?store=1", True),
        ("sensors?", True),
        ("metrics/net_sales?grain=hour", True),
        ("metrics/net_sales?grain=hour&store=1", False),
        ("metrics/net_sales?grain=hour&store=1&compare=previous_week", True),
        ("views/sales/cells?", True),
        ("views/sales/cells?store=1", False),
    ],
)
def test_what_reads_many_windows_of_stores_is_long(
    monkeypatch: pytest.MonkeyPatch, question: str, *, is_long: bool
) -> None:
    monkeypatch.setattr(service, "LONG_ASKED", 0)
    monkeypatch.setattr(answer, "LONG", 150)
    monkeypatch.setattr(answer, "ADDED_UP", 1)
    monkeypatch.setattr(answer, "SPLIT", 1)
    path, _, parameters = question.partition("?")

    response = Asking(two_stores()).response(
        f"/v1/{path}", from_="2026-11-10", to="2026-11-11", **dict(parse_qsl(parameters))
    )

    assert response.status_code == (503 if is_long else 200), response.text
