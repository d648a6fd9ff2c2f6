"""Followers of a query get complete merged answers whenever they change."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any

import httpx
import orjson
import pytest
import uvicorn

from master_dataset.errors import CassandraUnavailableError, UnknownNameError
from serving_layer import live as following
from serving_layer.api import metrics
from serving_layer.errors import TooBusyError, TooManyAtOnceError
from serving_layer.keys.key import OPERATOR, Caller
from serving_layer.limits import Limits
from serving_layer.live import ANSWER, PROBLEM, Event, Live, while_allowed
from serving_layer.pages import sessions
from serving_layer.pages.sessions import COOKIE, Session, Sessions
from serving_layer.query.resolve import MetricRequest, MetricsRequest
from serving_layer.query.stores import PageRequest
from serving_layer.store.snapshot import ReadVersion
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking

ACME = Caller("a key", "acme", frozenset({"read"}))
PATIENCE = 20.0
real_sleep = asyncio.sleep


def ask(metric: str = "net_sales") -> MetricsRequest:
    return MetricsRequest(
        (MetricRequest(metric, (), "2026-11-21", "2026-11-22", grain="total", timezone="UTC"),),
        PageRequest(None, None),
        is_table=False,
    )


def sell(world: World, number: int, second: int) -> None:
    at = f"2026-11-21T09:00:{second:02}Z"
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100, number=number), at)


def value(event: Event) -> Any:
    return orjson.loads(event.data)["series"][0]["points"][0]["value"]


@pytest.fixture
def world() -> World:
    world = World()
    sell(world, 1, 1)
    return world


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), PATIENCE))


def test_the_answer_of_now_comes_at_once_and_the_next_when_it_is_another_one(world: World) -> None:
    live = Live(Asking(world).answers)

    async def follow() -> None:
        async with live.follow(ask(), OPERATOR) as follower:
            events = follower.events(None)
            first = await anext(events)
            sell(world, 2, 5)
            second = await anext(events)

            assert [value(first), value(second)] == [1, 2]
            assert first.id != second.id

    run(follow)


@pytest.mark.parametrize(("key", "error"), [(ACME, TooManyAtOnceError), (OPERATOR, None)])
def test_so_many_may_follow_with_one_key(world: World, key: Caller, error: type[Exception] | None) -> None:
    live = Live(Asking(world).answers, Limits(live_followers_per_key=2))

    async def follow() -> None:
        async with live.follow(ask(), key), live.follow(ask(), key):
            with pytest.raises(error) if error else nullcontext():
                async with live.follow(ask(), key):
                    assert live.followers.total() == 3
            async with live.follow(ask(), OPERATOR):
                pass
        async with live.follow(ask(), key):
            assert live.followers.total() == 1

    run(follow)


@pytest.mark.parametrize(("most", "refused"), [(2, False), (1, True)])
def test_so_many_may_follow_at_once(world: World, most: int, refused: bool) -> None:  # noqa: FBT001 - a row of a table
    live = Live(Asking(world).answers, Limits(live_followers=most))

    async def follow() -> None:
        async with live.follow(ask(), OPERATOR):
            with pytest.raises(TooBusyError) if refused else nullcontext():
                async with live.follow(ask(), ACME):
                    assert live.followers.total() == 2

    run(follow)


def test_a_follower_that_has_an_answer_gets_only_the_next_one(world: World) -> None:
    live = Live(Asking(world).answers)

    async def follow() -> None:
        async with live.follow(ask(), OPERATOR) as follower:
            has = (await anext(follower.events(None))).id
        async with live.follow(ask(), OPERATOR) as follower:
            coming = asyncio.ensure_future(anext(follower.events(has)))
            await asyncio.sleep(0.1)
            assert not coming.done()
            sell(world, 2, 5)

            assert value(await coming) == 2

    run(follow)


def test_a_slow_follower_gets_the_newest_and_all_followers_get_the_same(world: World) -> None:
    live = Live(Asking(world).answers)

    async def follow() -> None:
        async with live.follow(ask(), OPERATOR) as slow, live.follow(ask(), OPERATOR) as quick:
            of_slow, of_quick = slow.events(None), quick.events(None)
            await anext(of_slow)
            await anext(of_quick)
            for number in (2, 3):
                sell(world, number, 5 * number)
                newest = await anext(of_quick)

            assert await anext(of_slow) == newest
            assert value(newest) == 3

    run(follow)


def test_a_bad_question_is_refused_before_any_event(world: World) -> None:
    live = Live(Asking(world).answers)

    async def follow() -> None:
        with pytest.raises(UnknownNameError):
            async with live.follow(ask("no_such_metric"), OPERATOR):
                pass

    run(follow)


def test_tenants_follow_their_own_shops_only(world: World) -> None:
    live = Live(Asking(world).answers)

    async def follow() -> None:
        async with live.follow(ask(), OPERATOR), live.follow(ask(), ACME) as theirs:
            assert orjson.loads((await anext(theirs.events(None))).data)["series"] == []

    run(follow)


def test_when_cassandra_does_not_answer_it_is_reported_and_work_continues(world: World) -> None:
    asking = Asking(world)
    live, answer = Live(asking.answers), asking.answers.read_version

    async def down(*_: object, **__: object) -> None:
        raise CassandraUnavailableError("Cassandra did not answer.", do="Ask again.")

    async def follow() -> None:
        async with live.follow(ask(), OPERATOR) as follower:
            events = follower.events(None)
            await anext(events)
            asking.answers.read_version = down  # type: ignore[assignment, method-assign]
            problem = await anext(events)
            asking.answers.read_version = answer  # type: ignore[method-assign]
            again = await anext(events)

            assert (problem.kind, orjson.loads(problem.data)["code"]) == ("problem", "store_unavailable")
            assert value(again) == 1

    run(follow)


def test_whoever_follows_is_let_go_when_the_process_ends(world: World) -> None:
    live = Live(Asking(world).answers)

    async def follow() -> None:
        async with live.follow(ask(), OPERATOR) as follower:
            events = follower.events(None)
            await anext(events)
            live.close()

            assert [event async for event in events] == []

    run(follow)


def test_a_key_that_follows_many_requests_has_few_answers_at_once_and_others_get_theirs(world: World) -> None:
    asking = Asking(world)
    live, answer = Live(asking.answers, Limits(requests_per_key=2)), asking.answers.metrics
    go_on, both, in_progress = asyncio.Event(), asyncio.Event(), []

    async def slow(request: MetricsRequest, version: ReadVersion, caller: Caller, *, has_slot: bool = False) -> bytes:
        if caller == ACME:
            in_progress.append(request)
            if len(in_progress) == 2:
                both.set()
            await go_on.wait()
        return await answer(request, version, caller, has_slot=has_slot)

    async def follow_once(metric: str) -> None:
        async with live.follow(ask(metric), ACME):
            pass

    async def follow() -> None:
        asking.answers.metrics = slow  # type: ignore[method-assign]
        many = [asyncio.ensure_future(follow_once(metric)) for metric in ("net_sales", "receipts", "units", "visitors")]
        await both.wait()
        async with live.follow(ask(), OPERATOR) as follower:
            assert value(await anext(follower.events(None))) == 1
        assert len(in_progress) == 2
        go_on.set()
        await asyncio.gather(*many, return_exceptions=True)
        assert len(in_progress) > 2

    run(follow)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of followers, which are not waited for. Each answer takes a minute."""
    found: list[float] = []

    async def noted(seconds: float) -> None:
        found.append(seconds)
        await real_sleep(0)

    monkeypatch.setattr("serving_layer.live.EVERY_SECONDS", 0.0)
    monkeypatch.setattr("serving_layer.live.time", SimpleNamespace(monotonic=count(step=60.0).__next__))
    monkeypatch.setattr("serving_layer.live.asyncio.sleep", noted)
    return found


def test_after_an_answer_that_took_long_the_next_one_waits_as_long(world: World, pauses: list[float]) -> None:
    async def follow() -> None:
        async with Live(Asking(world).answers).follow(ask(), OPERATOR):
            while len(pauses) < 2:
                await real_sleep(0)
        assert pauses[:2] == [60.0, 0.0]

    run(follow)


def test_an_answer_that_fails_after_long_is_not_tried_again_sooner(
    world: World, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(world)

    async def busy(*_: object, **__: object) -> bytes:
        raise TooBusyError("Everything is taken.", do="Ask again.")

    async def follow() -> None:
        async with Live(asking.answers).follow(ask(), OPERATOR):
            monkeypatch.setattr(asking.answers, "metrics", busy)
            sell(world, 2, 2)
            while pauses.count(60.0) < 2:
                await real_sleep(0)

    run(follow)


@asynccontextmanager
async def served(asking: Asking) -> AsyncIterator[httpx.AsyncClient]:
    """The app on a real port: a transport in this process would wait for the end of the events."""
    server = uvicorn.Server(uvicorn.Config(asking.app, "127.0.0.1", 0, log_level="warning"))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False) as client:
        yield client
    asking.app.state.live.close()
    server.should_exit = True
    await serving


@pytest.mark.parametrize("is_sold", [True, False])
def test_events_come_as_the_standard_has_them_and_end_with_the_key(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_sold: bool
) -> None:
    monkeypatch.setattr(metrics, "CHECK_SECONDS", 0.1)
    asking = Asking(world)
    key = asking.keys.make("*", "read")
    question = {"from": "2026-11-21", "to": "2026-11-22", "grain": "total", "timezone": "UTC"}

    async def follow() -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            served(asking) as client,
            client.stream("GET", "/v1/live/net_sales", params=question, headers=headers) as answer,
        ):
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.aiter_lines()
            event_fields = dict([(await anext(lines)).split(": ", 1) for _ in range(4)])
            assert event_fields["event"] == "answer"
            assert event_fields["id"].startswith('W/"')
            assert orjson.loads(event_fields["data"])["series"][0]["points"][0]["value"] == 1

            asking.keys.kept.clear()
            if is_sold:
                sell(world, 2, 5)
            assert [line async for line in lines if line.startswith("data")] == []

    run(follow)


async def sign_out(_: Asking, client: httpx.AsyncClient, session: Session) -> None:
    origin = str(client.base_url).removesuffix("/")
    headers = {"Origin": origin, "Cookie": f"{COOKIE}={session.id}"}
    response = await client.post("/logout", headers=headers, data={"token": session.token})
    assert response.status_code == 303


async def end_elsewhere(asking: Asking, _: httpx.AsyncClient, session: Session) -> None:
    other = Sessions(asking.sessions, time.monotonic, asking.world.now)
    await other.end(session)


async def expire(asking: Asking, _: httpx.AsyncClient, session: Session) -> None:
    asking.app.state.sessions._now = lambda: session.ends_at  # noqa: SLF001 - eight hours later


@pytest.mark.parametrize("end", [sign_out, end_elsewhere, expire])
@pytest.mark.parametrize("is_sold", [True, False])
def test_events_end_with_the_session_that_asked_for_them(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[Asking, httpx.AsyncClient, Session], Awaitable[None]],
    *,
    is_sold: bool,
) -> None:
    monkeypatch.setattr(metrics, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(sessions, "REFRESH_SECONDS", 0.0)
    asking = Asking(world)
    key = asking.keys.make("*", "read")
    question = {"from": "2026-11-21", "to": "2026-11-22", "grain": "total", "timezone": "UTC"}

    async def follow() -> None:
        session = await asking.app.state.sessions.begin(key)
        other = await asking.app.state.sessions.begin(key)
        of_session, of_other = ({"Cookie": f"{COOKIE}={each.id}"} for each in (session, other))
        path = "/v1/live/net_sales"
        async with (
            served(asking) as client,
            client.stream("GET", path, params=question, headers=of_session) as answer,
            client.stream("GET", path, params=question, headers=of_other) as unconcerned,
        ):
            lines, other_lines = answer.aiter_lines(), unconcerned.aiter_lines()
            for each in (lines, other_lines):
                assert [(await anext(each)).partition(":")[0] for _ in range(5)][-1] == ""

            await end(asking, client, session)
            if is_sold:
                sell(world, 2, 5)
            assert [line async for line in lines if line.startswith("data")] == []
            if end is not expire:
                sell(world, 3, 7)
                assert "data" in [(await anext(other_lines)).partition(":")[0] for _ in range(4)]

    run(follow)


@pytest.mark.parametrize("away", [0, 3])
def test_while_keys_cannot_be_read_problems_are_said_and_answers_wait(
    monkeypatch: pytest.MonkeyPatch, away: int
) -> None:
    monkeypatch.setattr(following, "EVERY_SECONDS", 0.01)
    asked, came = count(), list[tuple[str, int]]()

    async def some() -> AsyncIterator[Event]:
        yield Event("", PROBLEM, "")
        yield Event("", ANSWER, "")

    async def is_allowed() -> bool:
        if (now := next(asked)) < away:
            raise CassandraUnavailableError("away", do="wait")
        return now < 100

    async def follow() -> None:
        async for event in while_allowed(some(), is_allowed, every=0.01):
            came.append((event.kind, next(asked)))

    run(follow)
    assert [kind for kind, _ in came] == [PROBLEM, ANSWER]
    assert came[0][1] == 1
    assert came[1][1] > away


def test_whoever_may_not_read_is_refused_as_anywhere(world: World) -> None:
    asking = Asking(world)

    assert asking.refusal("/v1/live/net_sales", key="a guess", from_="2026-11-21", to="2026-11-22")["status"] == 401
    refused = asking.refusal("/v1/live/none", key=OPERATOR_KEY, from_="2026-11-21", to="2026-11-22")
    assert refused["code"] == "unknown_name"
