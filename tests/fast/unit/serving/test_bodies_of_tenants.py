"""Bodies that arrive: those of one tenant, and of everybody without a key, leave room for the others."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from master_dataset.registry.stores import Store
from serving_layer.keys.rates import RateLimiter
from serving_layer.limits import Limits
from tests.support import World
from tests.support.corpus.case import receipt
from tests.support.world_api import OPERATOR_KEY, Asking

EVENTS = "/v1/events/pos_transactions"
JSON, CSV, FORM = "application/json", "text/csv", "application/x-www-form-urlencoded"
STORES = (Store(id="1", timezone="UTC"), Store(id="acme-1", timezone="UTC", tenant="acme"))
ROOM = 4_000
"""Bytes of all bodies: a receipt has about 200."""


def asking_with(**limits: int) -> Asking:
    return Asking(World(*STORES), limits=Limits(**limits))


def client(asking: Asking) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(asking.app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://galatea")


async def statuses_beside(
    asking: Asking, stalled: tuple[str, dict[str, str], int], keys: list[str]
) -> tuple[list[int], list[int]]:
    """The statuses of events that are sent with these keys while bodies arrive that do not end, then of those bodies.

    `stalled`: path and headers of those, and how many there are; each has 1,000 bytes.
    """
    path, headers, count = stalled
    goes_on = asyncio.Event()

    async def stalling() -> AsyncIterator[bytes]:
        yield b"x" * 1_000
        await goes_on.wait()

    async with client(asking) as connection:
        posts = [
            asyncio.ensure_future(connection.post(path, headers=headers, content=stalling())) for _ in range(count)
        ]
        await asyncio.sleep(0.1)
        events = [
            await connection.post(
                EVENTS, headers={"Authorization": f"Bearer {key}", "Content-Type": JSON}, content=receipt()
            )
            for key in keys
        ]
        goes_on.set()
        held = await asyncio.gather(*posts)
    return [each.status_code for each in events], [each.status_code for each in held]


@pytest.mark.parametrize(
    ("path", "kind", "scope"),
    [("/v1/alert-rules/preview", JSON, "read"), ("/v1/annotations/load", CSV, "configure"), (EVENTS, JSON, "ingest")],
)
def test_a_tenant_that_never_ends_its_bodies_leaves_room_for_the_events_of_others(
    path: str, kind: str, scope: str
) -> None:
    asking = asking_with(bodies_bytes=ROOM)
    headers = {"Authorization": f"Bearer {asking.keys.make('acme', scope)}", "Content-Type": kind}  # type: ignore[arg-type]
    keys = [asking.keys.make("default", "ingest"), OPERATOR_KEY]

    events, held = asyncio.run(statuses_beside(asking, (path, headers, 6), keys))

    assert events == [202, 202]
    assert held.count(503) == 3
    assert asking.app.state.bodies.held == 0


def test_whoever_has_no_key_leaves_room_for_events() -> None:
    asking = asking_with(bodies_bytes=ROOM)
    headers = {"Content-Type": FORM, "Origin": "http://galatea"}

    events, held = asyncio.run(statuses_beside(asking, ("/login", headers, 6), [asking.keys.make("default", "ingest")]))

    assert events == [202]
    assert held.count(503) == 3


def test_a_single_body_has_room_however_few_bytes_may_be_held() -> None:
    asking = asking_with(bodies_bytes=250)
    key = asking.keys.make("default", "ingest")

    assert asking.sent(receipt(), authorization=f"Bearer {key}").status_code == 202


def test_a_key_that_sends_broken_bodies_has_as_few_requests_at_once_as_any_other() -> None:
    asking = asking_with(requests_per_key=2)
    headers = {"Authorization": f"Bearer {asking.keys.make('acme')}", "Content-Type": JSON}

    _, held = asyncio.run(statuses_beside(asking, ("/v1/alert-rules/preview", headers, 3), []))

    assert sorted(held) == [422, 422, 429]


def test_broken_bodies_count_for_the_rate_of_a_key() -> None:
    asking = asking_with()
    object.__setattr__(asking.app.state.authenticator, "rates", RateLimiter(2, 2))
    key = asking.keys.make("acme")

    found = [
        asking.response("/v1/alert-rules/preview", method="POST", key=key, said=b"{").status_code for _ in range(3)
    ]

    assert found == [422, 422, 429]


def test_a_body_that_is_read_is_counted_once() -> None:
    asking = asking_with()
    object.__setattr__(asking.app.state.authenticator, "rates", RateLimiter(2, 2))
    key = asking.keys.make("acme")

    found = [asking.response("/v1/alert-rules/preview", method="POST", key=key, said={}).status_code for _ in range(3)]

    assert found == [200, 200, 429]
