"""Texts that would mean something to a database go through all of the stack as data: sent, counted, split, shown."""

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import uuid4

import pytest

from galatea.client.connection import store_ids
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now
from tests.support.corpus.case import receipt
from tests.support.corpus.injection.injection_case import injection_cases

TEXTS = [case.text for case in injection_cases()]
NOW = datetime.now(UTC).isoformat(timespec="milliseconds")
TOGETHER = 50
"""Stores in one question: one may name a hundred, and a text may be long."""


def sold(store: str, text: str) -> bytes:
    """One receipt, all of whose other texts are this one."""
    texts = dict.fromkeys(("title", "sku", "vendor_fiscal_module", "transaction_id", "unknown"), json.dumps(text))
    return receipt({**texts, "operation_id": json.dumps(store), "happened_at": json.dumps(NOW)})


def send(stack: Stack, records: Sequence[bytes]) -> dict[str, object]:
    content, headers = b"[" + b",".join(records) + b"]", {"Content-Type": "application/json"}
    answer = stack.request("POST", "/v1/events/pos_transactions", content=content, headers=headers)
    assert answer.status_code == 202, answer.text
    body: dict[str, object] = answer.json()
    return body


@pytest.fixture(scope="module")
def shop(stack: Stack) -> str:
    """A store with a receipt of each text; and each text, behind a prefix, is a store of its own with one receipt."""
    name = f"injected-{uuid4().hex[:8]}"
    send(stack, [sold(name, text) for text in TEXTS])
    send(stack, [sold(name + text, text) for text in TEXTS])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while counted(stack, name) < len(TEXTS) and time.monotonic() < deadline:
        time.sleep(0.2)
    return name


def counted(stack: Stack, *stores: str) -> int:
    parameters = {"store": store_ids(stores), "grain": "total", "timezone": "UTC", **around_now()}
    series = stack.get("/v1/metrics/total_transactions_count", **parameters)["series"]
    return sum(each["points"][0]["value"] or 0 for each in series)


def some(texts: Sequence[str]) -> Iterator[list[str]]:
    left = iter(texts)
    while found := list(islice(left, TOGETHER)):
        yield found


@pytest.mark.parametrize(("metric", "dimension"), [("sku_attach_rate", "sku"), ("till_share", "till")])
def test_each_text_is_a_value_of_its_dimension(stack: Stack, shop: str, metric: str, dimension: str) -> None:
    parameters = {"store": shop, "by": dimension, "grain": "total", "timezone": "UTC", **around_now()}

    series = stack.get(f"/v1/metrics/{metric}", **parameters)["series"]

    assert sorted(each["dimensions"][dimension] for each in series) == sorted(TEXTS)


def test_each_text_is_a_store_that_can_be_requested(stack: Stack, shop: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    found: list[int] = []
    while time.monotonic() < deadline and sum(found) < len(TEXTS):
        found = [counted(stack, *(shop + text for text in each)) for each in some(TEXTS)]

    assert sum(found) == len(TEXTS)


def test_receipts_are_shown_byte_for_byte_a_page_at_a_time(stack: Stack, shop: str) -> None:
    shown: list[Any] = []
    after: str | None = None
    while after or not shown:
        place: dict[str, str] = {"after": after} if after else {}
        page = stack.get("/v1/raw/pos_transactions", store=shop, day=NOW[:10], limit=40, **place)
        shown += page["receipts"]
        after = page["next"]

    assert sorted(each["transaction_id"] for each in shown) == sorted(TEXTS)
    assert {each["receipt"]["transactions"][0]["title"] for each in shown} == set(TEXTS)
    assert all(each["vendor_fiscal_module"] == each["receipt"]["unknown"] for each in shown)
