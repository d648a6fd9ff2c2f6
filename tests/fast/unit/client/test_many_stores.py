"""An answer about more stores than a response holds: all pages, of one version or not at all."""

import asyncio
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from typing import Any

import httpx
import msgspec
import pytest

from galatea.client import AsyncClient, whole_answers
from galatea.client.answers import Answer
from galatea.client.errors import AnswerTooLongError, Problem, ResponseError, VersionChangedError
from galatea.client.whole_answers import FEW_STORES
from master_dataset.registry.stores import Store, currency
from serving_layer.query import groups
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import answering, async_client, client

START, END = "2026-11-17", "2026-11-18"
IDS = [f"{number:03}" for number in range(250)]


@pytest.fixture(scope="module")
def asking() -> Asking:
    """250 stores, of which each tenth has sold something; the first in another currency."""
    stores = [Store(id=each, timezone="UTC", currency=currency("CZK" if each == "000" else "EUR")) for each in IDS]
    world = World(*stores)
    for number, each in enumerate(IDS[::10]):
        world.receive(receipt("2026-11-17T10:07:00Z", minor=100 + number, store=each), "2026-11-17T10:07:10Z")
    return Asking(world)


def test_all_stores_are_read_as_if_the_answer_was_one(asking: Asking) -> None:
    answer = client(asking).metric("total_transactions_count", start=START, end=END)

    assert [series.store for series in answer.series] == IDS
    assert sum(point.value == 1 for point in answer.points) == 25
    assert answer.next is None
    assert answer.as_of.waiting_for_batch == 0


@pytest.mark.parametrize("store", [(), IDS[:60], IDS[:120]])
def test_stores_with_too_many_points_for_one_response_are_read_a_few_at_a_time(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, store: list[str]
) -> None:
    whole = client(asking).metric("total_transactions_count", start=START, end=END, grain="15m", store=store)
    monkeypatch.setattr(groups, "MOST_POINTS_WRITTEN", 96 * FEW_STORES)

    answer = client(Asking(asking.world)).metric(
        "total_transactions_count", start=START, end=END, grain="15m", store=store
    )

    assert answer.series == whole.series
    assert answer.as_of.waiting_for_batch == 0


def test_an_answer_that_is_too_long_of_few_stores_is_an_error(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_POINTS_WRITTEN", 96 * FEW_STORES - 1)

    with pytest.raises(ResponseError, match="more than 959 points"):
        client(Asking(asking.world)).metric("total_transactions_count", start=START, end=END, grain="15m")


def test_series_of_pages_with_other_currencies_say_their_own(asking: Asking) -> None:
    answer = client(asking).metric("net_sales", start=START, end=END, store=[*IDS[150:], "000"])

    assert answer.currency is None
    assert {series.currency for series in answer.series} == {"EUR", "CZK"}
    assert answer.series[-1].points[0].value == Decimal("1.00")


def test_named_stores_keep_their_order(asking: Asking) -> None:
    answers = client(asking).several(["traffic_in", "total_transactions_count"], start=START, end=END, store=IDS[::-1])

    assert [series.store for series in answers["total_transactions_count"].series] == IDS[::-1]
    assert answers.next is None
    assert answers["traffic_in"].as_of.publication == answers.as_of.publication


def test_a_store_that_is_named_twice_is_in_the_answer_once(asking: Asking) -> None:
    named = [*IDS[:120], IDS[0], IDS[119]]

    answer = client(asking).metric("total_transactions_count", start=START, end=END, store=named)

    assert [series.store for series in answer.series] == IDS[:120]


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("total_transactions_count", {}),
        ("total_transactions_count", {"grain": "hour", "compare": "previous_week"}),
        ("net_sales", {"by": "currency"}),
        ("net_sales", {"by": ["currency"], "grain": "total"}),
        ("avg_transaction_value", {"by": "store,currency"}),
        ("sku_units", {"by": "sku"}),
    ],
)
def test_an_answer_in_one_response_is_the_one_that_pages_make(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, metric: str, options: Any
) -> None:
    def refused(*_: object) -> Iterator[Any]:
        yield from ()
        raise ResponseError(Problem(code="bad_question", title="Not sorted."), 422)

    galatea = client(asking)
    whole = galatea.metric(metric, start=START, end=END, **options)
    monkeypatch.setattr(whole_answers, "_sorted_by_store", refused)
    paged = galatea.metric(metric, start=START, end=END, **options)

    assert whole == paged
    assert whole.series


def test_the_client_for_asyncio_reads_all_stores_too(asking: Asking) -> None:
    answer = asyncio.run(read(async_client(asking)))

    assert [series.store for series in answer.series] == IDS


async def read(galatea: AsyncClient) -> Answer:
    async with galatea:
        return await galatea.metric("total_transactions_count", start=START, end=END)


def test_a_requested_page_is_one_page(asking: Asking) -> None:
    answer = client(asking).metric("total_transactions_count", start=START, end=END, limit=2)

    assert [series.store for series in answer.series] == IDS[:2]
    assert answer.next is not None


def test_what_cannot_be_put_together_is_refused_by_the_api(asking: Asking) -> None:
    with pytest.raises(ResponseError) as refused:
        client(asking).metric("total_transactions_count", start=START, end=END, sort="value")

    assert refused.value.code == "too_many_stores"


def paging(version_of: Callable[[int], int], *, pages: int = 3, points: int = 1) -> Callable[[httpx.Request], Any]:
    """An API with so many pages of a store each, whose data has a version per request."""
    requests = count()

    def answer(request: httpx.Request) -> httpx.Response:
        if "limit" not in request.url.params:  # nor are sorted series answered
            problem = {"code": "too_many_stores", "title": "Too many."}
            return httpx.Response(422, json=problem, headers={"content-type": "application/problem+json"})
        number, page = next(requests), int(request.url.params.get("after", "0"))
        version = version_of(number)
        point = {"start": "2026-11-17T00:00:00Z", "value": version, "final": False}
        as_of = {"publication": version, "cut": "2026-11-17T00:00:00Z", "waiting_for_batch": 1, "layers": ["batch"]}
        body = {
            "metric": "total_transactions_count",
            "unit": "n",
            "grain": "day",
            "timezone": "UTC",
            "series": [{"store": f"{page}", "timezone": "UTC", "dimensions": {}, "points": [point] * points}],
            "as_of": as_of,
            "next": f"{page + 1}" if page + 1 < pages else None,
        }
        return httpx.Response(200, json=body)

    return answer


@pytest.mark.parametrize(
    ("versions", "requests"), [((1,), 3), ((1, 2), 4), ((1, 1, 2), 5), ((1, 2, 3), 5), ((1, 2, 3, 4, 5), 7)]
)
def test_pages_of_an_older_version_are_read_again(versions: tuple[int, ...], requests: int) -> None:
    asked: list[int] = []

    def version(number: int) -> int:
        asked.append(number)
        return versions[min(number, len(versions) - 1)]

    answer = answering(paging(version)).metric("total_transactions_count", start=START, end=END)

    assert {point.value for point in answer.points} == {versions[-1]} == {answer.as_of.publication}
    assert [series.store for series in answer.series] == ["0", "1", "2"]
    assert answer.as_of.waiting_for_batch == 3
    assert len(asked) == requests


def test_pages_that_never_agree_are_an_error_and_not_an_answer() -> None:
    with pytest.raises(VersionChangedError, match=re.escape("`as_of`")):
        answering(paging(lambda number: number)).metric("total_transactions_count", start=START, end=END)


def test_too_many_pages_or_points_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnswerTooLongError, match="10,000 stores"):
        answering(paging(lambda _: 1, pages=101)).metric("total_transactions_count", start=START, end=END)

    monkeypatch.setattr(whole_answers, "MAX_POINTS", 5)
    with pytest.raises(AnswerTooLongError, match="coarser `grain`"):
        answering(paging(lambda _: 1, points=2)).metric("total_transactions_count", start=START, end=END)


def test_a_store_that_comes_while_pages_are_read_is_not_passed_over() -> None:
    stores = [["1", "3"], ["4"]]
    bodies: Iterator[Any] = iter([])

    def page(stores: list[str], following: str | None, version: int) -> dict[str, Any]:
        series = [{"store": each, "timezone": "UTC", "dimensions": {}, "points": []} for each in stores]
        as_of = {"publication": version, "cut": "2026-11-17T00:00:00Z", "waiting_for_batch": 0, "layers": ["batch"]}
        of = {"metric": "net_sales", "unit": "money", "grain": "day", "timezone": "UTC", "currency": "EUR"}
        return {**of, "series": series, "as_of": as_of, "next": following}

    bodies = iter(
        [
            page(stores[0], "3", 1),
            page(stores[1], None, 2),
            page(["1", "2"], "2", 2),  # store 2 came, so store 3 is on the next page now
            page(["3", "4"], None, 2),
        ]
    )

    def answer(request: httpx.Request) -> httpx.Response:
        if "limit" not in request.url.params:
            return httpx.Response(422, json={"code": "too_many_stores", "title": "Too many."})
        return httpx.Response(200, content=msgspec.json.encode(next(bodies)))

    found = answering(answer).metric("net_sales", start=START, end=END)

    assert [series.store for series in found.series] == ["1", "2", "3", "4"]
