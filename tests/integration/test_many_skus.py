"""A store sells more SKUs on a day than fit into a message of Cassandra: rebuilds go on, and every number is right."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from random import Random

import pytest

from tests.integration.conftest import Stack, around_now, until
from tests.support import receipt

pytestmark = pytest.mark.nightly
STORE, TOPIC = "many skus", "pos_transactions"
RECEIPTS, LATE, LINES = 60, 6, 3_000
"""The first make a block of cells of 12 MB, and the late ones lines of a ledger of 12 MB."""
OLD = timedelta(hours=40)
"""More than the speed layer decides about."""


def receipts(count: int, first: int, age: timedelta) -> Iterator[bytes]:
    """Each of a euro for each of its lines, which have SKUs of their own."""
    at = (datetime.now(UTC) - age).isoformat(timespec="milliseconds")
    for number in range(first, first + count):
        lines: list[dict[str, object]] = [
            {"title": "x", "price": 1, "amount": 1, "sku": f"{number:015}-{each:015}"} for each in range(LINES)
        ]
        yield receipt(at, lines, number=number, store=STORE)


def sold(stack: Stack, store: str = STORE) -> tuple[float, int] | None:
    """The store's sales, and how many events wait; None as long as speed answers nothing, or nothing of the store."""
    found = stack.request("GET", "/v1/metrics/net_sales", params={"store": store, "grain": "total", **around_now()})
    if found.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    assert found.status_code == HTTPStatus.OK, found.text
    body = found.json()
    if not body["series"]:
        return None
    return body["series"][0]["points"][0]["value"] or 0.0, body["as_of"]["waiting_for_batch"]


def corrections(stack: Stack) -> int:
    """How many the newest publication has of SKUs of the store."""
    found, question = 0, {"store": STORE, "view": "sales_by_sku", "limit": "1000"}
    while True:
        page = stack.get("/v1/corrections", **question)
        found += len(page["corrections"])
        if page["next"] is None:
            return found
        question["after"] = page["next"]


def test_a_rebuild_keeps_blocks_and_ledgers_that_are_larger_than_a_message_of_cassandra(stack: Stack) -> None:
    stack.ingest(TOPIC, receipts(1, 0, OLD))
    until(lambda: sold(stack) is not None, "speed answers")
    stack.rebuild()
    stack.ingest(TOPIC, receipts(RECEIPTS, 1, timedelta(seconds=1)))
    stack.ingest(TOPIC, receipts(LATE, 1 + RECEIPTS, OLD))
    counted, due = float((1 + RECEIPTS) * LINES), float((1 + RECEIPTS + LATE) * LINES)
    until(lambda: sold(stack) == (counted, LATE), "all receipts are counted, but for the late ones")

    stack.rebuild()

    assert sold(stack) == (due, 0)
    assert corrections(stack) >= LATE * LINES
    verdict = stack.verify()
    assert (verdict.differing, verdict.examples) == (0, [])


def test_a_rebuild_keeps_day_cells_and_ledgers_with_long_texts(stack: Stack) -> None:
    store, till, random = "long texts", "\x01" * 256, Random(5)
    old = (datetime.now(UTC) - OLD).isoformat(timespec="milliseconds")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    few: list[dict[str, object]] = [{"title": "x", "price": 1, "amount": 1, "sku": f"{each}"} for each in range(500)]
    stack.ingest(TOPIC, [receipt(old, few, number=0, store=store)])
    until(lambda: sold(stack, store) is not None, "speed answers")
    stack.rebuild()

    # A ledger names all twenty late receipts in each of five hundred cells, by what their till is called.
    stack.ingest(TOPIC, [receipt(old, few, number=number, store=store, till=till) for number in range(1, 21)])
    for number in range(20):
        skus = ["".join(chr(random.randrange(35, 91)) for _ in range(256)) for _ in range(2_600)]
        lines: list[dict[str, object]] = [{"title": "x", "price": 1, "amount": 1, "sku": sku} for sku in skus]
        stack.ingest(TOPIC, [receipt(now, lines, number=100 + number, store=store)])
    until(lambda: sold(stack, store) == (500.0 + 20 * 2_600, 20), "all receipts are counted, but for the late ones")

    stack.rebuild()

    assert sold(stack, store) == (21 * 500.0 + 20 * 2_600, 0)
    verdict = stack.verify()
    assert (verdict.differing, verdict.examples) == (0, [])
