"""At least mine: an answer contains what its client has sent a moment before, or says that it does not yet."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil
import psycopg
import pytest

from deploy.local.records import Records
from galatea.client import Client
from tests.integration.conftest import UNTIL_A_CUT_COVERS_IT, Stack, around_now, until
from tests.support import receipt
from tests.support.sql_server import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "pos_transactions"
WRITERS, PAIRS = 6, 20
SALES = "net_sales"
OF_ITEMS = "sku_net_sales"
"""Of another view: asked together, both count only complete micro-batches."""


@pytest.fixture(autouse=True, scope="module")
def counting(stack: Stack) -> None:
    """The speed layer of a new stack has to have begun: until then, there is no answer for other reasons."""

    def has_begun() -> bool:
        answer = stack.request("GET", f"/v1/metrics/{SALES}", params={"grain": "total", **around_now()})
        return answer.status_code == 200

    until(has_begun, "the speed layer does not begin")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def reader(stack: Stack) -> "Iterator[Client]":
    """A client that reads its own writes."""
    ca_file = stack.settings.api.ca_file or None
    with Client(stack.settings.api_url, stack.operator_key, ca_file=ca_file) as client:
        yield client.read_your_writes()


def asked(stack: Stack, store: str, token: str) -> httpx.Response:
    question = {"store": store, "grain": "total", "at_least": token, **around_now()}
    return stack.request("GET", f"/v1/metrics/{SALES}", params=question)


def posted(stack: Stack, event: bytes) -> str:
    headers = {"Content-Type": "application/json"}
    answer = stack.request("POST", f"/v1/events/{TOPIC}", headers=headers, content=event)
    assert answer.status_code == 202, answer.text
    token: str = answer.json()["token"]
    return token


def pairs(stack: Stack, writer: int) -> int:
    """Post and ask, again and again; what each answer lacks or has too much is an error."""
    store = f"at-least-{writer}"
    span = around_now()
    with reader(stack) as client:
        for number in range(1, PAIRS + 1):
            client.ingest(TOPIC, [receipt(now(), minor=100, number=number, store=store)])
            several = client.several([SALES, OF_ITEMS], start=span["from"], end=span["to"], store=store, grain="total")
            one = client.metric(SALES, start=span["from"], end=span["to"], store=store, grain="total")
            values = [
                point.value for each in (*several.answers, one) for series in each.series for point in series.points
            ]
            assert len(values) == 3, values
            assert set(values) == {number}, (store, number, values)
    return PAIRS


def test_each_answer_contains_what_its_client_has_just_sent(stack: Stack) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        done = list(pool.map(lambda writer: pairs(stack, writer), range(WRITERS)))

    assert sum(done) == WRITERS * PAIRS


def test_while_the_speed_layer_stands_still_the_answer_is_not_yet(stack: Stack) -> None:
    store = "at-least-paused"
    with suspended(stack, "speed"):
        token = posted(stack, receipt(now(), minor=100, store=store))
        refused = asked(stack, store, token)
        stale = stack.request("GET", f"/v1/metrics/{SALES}", params={"max_staleness": "0s", **around_now()})
        [behind] = refused.json()["progress"]["positions"]
    assert (refused.status_code, refused.json()["code"]) == (503, "not_yet")
    assert (behind["topic"], behind["needed"] > behind["position"]) == (TOPIC, True)
    assert (stale.status_code, stale.json()["code"]) == (503, "not_yet")

    until(lambda: asked(stack, store, token).status_code == 200, "it is never there")
    assert asked(stack, store, token).json()["series"][0]["points"][0]["value"] == 1


def test_an_event_that_is_too_old_for_speed_is_there_once_it_is_published(stack: Stack) -> None:
    store, happened = "at-least-old", "2026-01-05T10:00:00Z"
    token = posted(stack, receipt(happened, minor=100, store=store))
    question = {"store": store, "grain": "total", "at_least": token, "from": "2026-01-01", "to": "2026-02-01"}

    first = stack.request("GET", f"/v1/metrics/{SALES}", params=question)
    if first.status_code != 200:  # a prompt correction may have published it already
        assert first.json()["code"] == "not_yet"
        assert first.json()["progress"]["cut_needed"] is not None
        time.sleep(UNTIL_A_CUT_COVERS_IT)
        stack.rebuild()
    answered = stack.request("GET", f"/v1/metrics/{SALES}", params=question)
    assert answered.json()["series"][0]["points"][0]["value"] == 1


def test_sql_contains_what_rest_has_accepted(stack: Stack, tmp_path: Path) -> None:
    stores = tmp_path / "stores.yaml"
    stores.write_text("stores: [{id: at-least-sql, timezone: UTC}]")
    stack.run("stores", "load", str(stores))
    port = next(each for each in stack.galatea("status")["components"] if each["name"] == "sql")["address"].split(":")[
        1
    ]
    store = "at-least-sql"
    with psycopg.connect(
        host=HOST, port=port, user="default", password=stack.operator_key, dbname="galatea", autocommit=True
    ) as connection:
        for number in range(1, 6):
            token = posted(stack, receipt(now(), minor=100, number=number, store=store))
            connection.execute(f"SET galatea.at_least = '{token}'")
            found = connection.execute("select sum(net_sales) from sales_day where store = 'at-least-sql'").fetchone()
            assert found == (number,)


def test_a_token_of_another_place_is_refused_by_name(stack: Stack) -> None:
    token = posted(stack, receipt(now(), minor=100, store="at-least-wrong"))
    version, cut, first, last, topic, tag, ends = token.split("~")
    stem = [version, cut, first, last, topic]

    refusals = [
        asked(stack, "at-least-wrong", "~".join(broken)).json()
        for broken in (
            [*stem, "00000000", ends],
            [*stem, tag, "ffffffffffff"],
            [*stem, tag, f"{'.' * 60}1"],
            ["nonsense"],
        )
    ]

    assert [(each["status"], each["code"]) for each in refusals] == [(422, "bad_question")] * 4
    assert all("`at_least`" in each["title"] for each in refusals)


@contextmanager
def suspended(stack: Stack, name: str) -> "Iterator[None]":
    """The process of this name, and all that it started, stand still until the end of the block."""
    pid = Records(stack.settings.home).pid(name)
    assert pid is not None
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    for each in family:
        each.suspend()
    try:
        yield
    finally:
        for each in family:
            each.resume()
