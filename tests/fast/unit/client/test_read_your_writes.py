"""A client that reads its own writes: it sends what it has sent and seen with each question."""

import asyncio

import httpx
import pytest
import stamina

from galatea.client.errors import InvalidResponseError, UnavailableError
from galatea.client.tokens import joined
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import answering, async_client, client

TOPIC = "pos_transactions"
AT = "2026-11-21T09:00:01Z"
SALE = receipt("2026-11-21T09:00:00Z", minor=100)
AT_US = 1_795_251_601_000_000
DAY = {"start": "2026-11-21", "end": "2026-11-22", "store": "1"}


def test_what_was_sent_is_in_the_next_answer_or_there_is_none() -> None:
    asking = Asking(World())
    asking.clock_us = AT_US
    own = client(asking, OPERATOR_KEY).read_your_writes()
    own.ingest(TOPIC, [SALE])

    with stamina.set_testing(True, attempts=1), pytest.raises(UnavailableError) as refused:
        own.metric("net_sales", **DAY)  # type: ignore[arg-type]
    asking.world.receive(SALE, AT)
    answer = own.metric("net_sales", **DAY)  # type: ignore[arg-type]

    assert refused.value.code == "not_yet"
    assert [point.value for series in answer.series for point in series.points] == [1]


def test_others_do_not_wait_for_it() -> None:
    asking = Asking(World())
    plain = client(asking, OPERATOR_KEY)
    plain.read_your_writes().ingest(TOPIC, [SALE])

    assert plain.metric("net_sales", **DAY).series  # type: ignore[arg-type]
    assert plain.read_your_writes().metric("net_sales", **DAY).series  # type: ignore[arg-type]


def test_what_was_seen_is_in_every_later_answer_of_whatever_process() -> None:
    ahead, behind = Asking(World()), Asking(World())
    ahead.world.receive(SALE, AT)
    behind.topics.ends = {TOPIC: {0: 1}}
    now = [ahead]

    def answer(request: httpx.Request) -> httpx.Response:
        found = now[0].request(request.method, str(request.url), headers=request.headers)
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    own = answering(answer).read_your_writes()
    own.metric("net_sales", **DAY)  # type: ignore[arg-type]
    now[0] = behind

    with stamina.set_testing(True, attempts=1), pytest.raises(UnavailableError) as refused:
        own.metric("net_sales", **DAY)  # type: ignore[arg-type]
    assert refused.value.code == "not_yet"


def test_an_api_that_knows_no_tokens_is_not_taken_for_one_that_does() -> None:
    own = answering(lambda _: httpx.Response(200, json={})).read_your_writes()

    with pytest.raises(InvalidResponseError, match="no token"):
        own.metric("net_sales", **DAY)  # type: ignore[arg-type]


def test_the_client_that_awaits_does_the_same() -> None:
    asking = Asking(World())
    asking.clock_us = AT_US

    async def sent_and_seen() -> list[object]:
        own = async_client(asking, OPERATOR_KEY).read_your_writes()
        await own.ingest(TOPIC, [SALE])
        asking.world.receive(SALE, AT)
        answer = await own.metric("net_sales", **DAY)  # type: ignore[arg-type]
        return [point.value for series in answer.series for point in series.points]

    assert asyncio.run(sent_and_seen()) == [1]


def test_tokens_of_another_version_are_not_joined() -> None:
    with pytest.raises(InvalidResponseError, match="newer client"):
        joined("1~~~", "2~~~")
