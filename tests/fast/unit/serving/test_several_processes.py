"""Two api processes over one store: whatever a client has seen at one, it does not lose at the other."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import orjson
import pytest

from master_dataset.registry.stores import Store
from serving_layer.keys.key import OPERATOR
from serving_layer.live import Live
from serving_layer.pages.sessions import COOKIE
from serving_layer.query.resolve import MetricRequest, MetricsRequest
from serving_layer.query.stores import PageRequest
from serving_layer.service import RECENT_SECONDS, Clocks
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing

NET = "/v1/metrics/net_sales"
DAY = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}
QUERY = f"{NET}?store=1&from=2026-11-21&to=2026-11-22"


@pytest.fixture
def world() -> World:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return world


def two(world: World) -> tuple[Asking, Asking]:
    one = Asking(world)
    return one, Asking(world, beside=one)


# Sessions


def test_who_signed_in_at_one_process_is_signed_in_at_the_other(world: World) -> None:
    one, other = map(Browsing, two(world))

    one.sign_in(OPERATOR_KEY)
    other.cookies = one.cookies

    assert "Sign out" in other.get("/")
    assert other.response("GET", "/v1/recomputes/unknown").status_code == 404  # and not 401


def test_a_form_of_one_process_may_be_sent_to_the_other(world: World) -> None:
    one, other = map(Browsing, two(world))
    login = one.send("/login", form_of="/login", key=OPERATOR_KEY, following="/recomputes")
    other.cookies = one.cookies
    session = asyncio.run(one.asking.app.state.sessions.of(one.cookies[COOKIE]))

    sent = other.post("/recomputes", f"token={session.token}&reason=because&mode=preview")

    assert login.status_code == 303
    assert sent.status_code == 303
    assert len(other.asking.recomputing.requests) == 1


def test_who_signs_out_at_one_process_is_signed_out_at_the_other(world: World) -> None:
    one, other = map(Browsing, two(world))
    one.sign_in(OPERATOR_KEY)
    other.cookies = httpx.Cookies(one.cookies)
    assert "Sign out" in other.get("/")

    one.send("/logout", form_of="/")

    assert "Sign out" not in other.get("/")


def test_a_revoked_key_ends_its_session_everywhere(world: World) -> None:
    one, other = map(Browsing, two(world))
    one.sign_in(one.asking.keys.make("acme"))
    other.cookies = httpx.Cookies(one.cookies)
    other.get("/")

    one.asking.keys.kept.clear()

    other.get("/", status=401)
    assert one.asking.sessions.kept == {}


# Answers


class Timed(Asking):
    """As in production: the snapshot may be a moment old. All processes have one clock, which a test sets."""

    recent_seconds = RECENT_SECONDS
    seconds = 0.0

    def clocks(self, monotonic: Callable[[], float]) -> Clocks:  # noqa: ARG002 - instead of it
        return Clocks(lambda: Timed.seconds, self.world.now, self.sleep)

    @staticmethod
    async def sleep(seconds: float) -> None:
        Timed.seconds += seconds


def publication(process: Asking, **headers: str) -> int:
    response = process.request("GET", QUERY, headers=headers)
    assert response.status_code == 200, response.text
    found: int = response.json()["as_of"]["publication"]
    return found


@pytest.mark.parametrize("headers", [{}, {"Cache-Control": "no-cache"}])
@pytest.mark.parametrize("later", [0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
def test_a_publication_that_one_process_answers_from_is_known_to_the_other(
    world: World, headers: dict[str, str], later: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Timed, "seconds", 100.0)
    one = Timed(world)
    other = Timed(world, beside=one)
    assert publication(one) == 1
    Timed.seconds += RECENT_SECONDS - later
    assert publication(other) == 1

    world.rebuild("2026-11-21T11:00:00Z")
    Timed.seconds += later + 0.001  # what `one` has read is too old, what `other` has read may be not
    seen = publication(one, **headers)

    assert seen == 2
    assert publication(other) == 2


class Still(Asking):
    """No time passes, so that nothing is read again by itself."""

    step = 0


def test_whoever_asks_for_the_newest_sees_what_was_changed_at_the_other_process(world: World) -> None:
    one = Still(world)
    other = Still(world, beside=one)
    for asking in (one, other):
        asking.body("/v1/stores")

    world.stores["2"] = Store(id="2", timezone="UTC")

    assert [each["id"] for each in other.body("/v1/stores")["stores"]] == ["1"]
    assert other.newest(NET, **DAY | {"store": "2"}).status_code == 200
    assert [each["id"] for each in other.newest("/v1/stores").json()["stores"]] == ["1", "2"]


def test_pages_of_products_may_come_from_several_processes(world: World) -> None:
    one = Still(world)
    other = Still(world, beside=one)
    for version in ("milk", "bread"):
        products = "".join(f'{{"sku": "{version}-{n}", "title": "{version}"}}\n' for n in range(3))
        headers = {"Authorization": f"Bearer {OPERATOR_KEY}", "Content-Type": "application/x-ndjson"}
        assert one.request("POST", "/v1/products?replace=true", headers=headers, content=products).status_code == 200
        if version == "milk":  # so that the other process knows this version, and not the next
            other.body("/v1/products", limit=1)

    first = one.newest("/v1/products", limit=1).json()
    second = other.response("/v1/products", limit=1, after=first["next"])

    assert second.status_code == 200, second.text
    assert second.json()["version"] == first["version"]


def test_equal_answers_have_equal_tags_in_every_process() -> None:
    tags = {
        subprocess.run(
            [sys.executable, "-c", TAGS],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(tags) == 1
    assert tags.pop().count('W/"') == len(PATHS)


PATHS = (
    f"{QUERY}&by=total",
    f"{NET},total_transactions_count?from=2026-11-21&to=2026-11-22&by=total&grain=total",
    f"{NET}?range=today&store=1&store=2",
    "/v1/views/sales/cells?store=1&from=2026-11-21&to=2026-11-22",
    "/v1/index/net_sales?store=1&from=2026-11-21&to=2026-11-22",
    "/v1/sensors?store=1&from=2026-11-21&to=2026-11-22",
    "/v1/metrics",
    "/v1/stores",
)
TAGS = f"""
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
world = World()
world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
world.rebuild("2026-11-21T10:00:00Z")
for path in {PATHS!r}:
    print(Asking(world).request("GET", path, headers={{"Authorization": "Bearer " + OPERATOR_KEY}}).headers.get("etag"))
"""


# Live answers


def followed() -> MetricsRequest:
    return MetricsRequest(
        (MetricRequest("net_sales", (), "2026-11-21", "2026-11-22", grain="total", timezone="UTC"),),
        PageRequest(None, None),
        is_table=False,
    )


def value(data: str) -> Any:
    return orjson.loads(data)["series"][0]["points"][0]["value"]


def test_a_follower_that_goes_on_at_another_process_neither_goes_back_nor_gets_an_event_twice(world: World) -> None:
    one, other = two(world)

    async def follow() -> list[Any]:
        first, second = Live(one.answers), Live(other.answers)
        values = []
        async with second.follow(followed(), OPERATOR) as early:  # so the other process has an older answer already
            await anext(early.events(None))
            world.receive(receipt("2026-11-21T09:30:00Z", minor=100, number=2), "2026-11-21T10:00:05Z")
            async with first.follow(followed(), OPERATOR) as follower:
                seen = await anext(follower.events(None))
                values.append(value(seen.data))
            async with second.follow(followed(), OPERATOR) as again:
                events = again.events(seen.id)
                following = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0.1)
                world.receive(receipt("2026-11-21T09:31:00Z", minor=100, number=3), "2026-11-21T10:00:09Z")
                values.append(value((await following).data))
        return values

    assert asyncio.run(asyncio.wait_for(follow(), 20)) == [2, 3]


def test_a_follower_that_missed_events_gets_the_newest_at_once(world: World) -> None:
    one, other = two(world)

    async def follow() -> list[Any]:
        async with Live(one.answers).follow(followed(), OPERATOR) as follower:
            seen = await anext(follower.events(None))
        world.receive(receipt("2026-11-21T09:30:00Z", minor=100, number=2), "2026-11-21T10:00:05Z")
        async with Live(other.answers).follow(followed(), OPERATOR) as again:
            return [value(seen.data), value((await anext(again.events(seen.id))).data)]

    assert asyncio.run(asyncio.wait_for(follow(), 20)) == [1, 2]
