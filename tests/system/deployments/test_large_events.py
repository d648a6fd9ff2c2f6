"""Events of nearly a megabyte, more of them than fit into memory: they are archived and counted like others.

Some have one long title, others tens of thousands of lines, which stay large when they are parsed.
"""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of, started

pytestmark = pytest.mark.nightly
TOPIC, STORE = "pos_transactions", "large"
RECEIPTS, MANY, LINES = 700, 120, 18_000
"""Receipts, more than fit into the heaps of the archive and the speed layer; how many have many lines; and these."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with started(*settings_of(tmp_path_factory.mktemp("large") / "home", GALATEA_SPEED_MICRO_BATCH_MB="128")) as found:
        yield found


def large(number: int) -> bytes:
    """A receipt of nearly a megabyte, about one euro, or about one for each of its lines."""
    line = {"title": "a" * 950_000, "price": 1, "amount": 1}
    lines = [{"title": "", "price": 1, "amount": 1, "sku": f"{each}"} for each in range(LINES)]
    body = {
        "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "operation_id": STORE,
        "vendor_fiscal_module": 1,
        "transaction_id": number,
        "transactions": lines if number % (RECEIPTS // MANY) == 0 else [line],
    }
    return json.dumps(body, separators=(",", ":")).encode()


def test_hundreds_of_megabytes_are_archived_and_counted(stack: Stack) -> None:
    stack.ingest(TOPIC, map(large, range(RECEIPTS)))
    stack.run("speed", "restart")  # reads them as a backlog
    many = len(range(0, RECEIPTS, RECEIPTS // MANY))
    due = many * LINES + RECEIPTS - many

    deadline = time.monotonic() + 4 * PATIENCE_SECONDS
    while (found := shown(stack)) != due:
        assert found is None or found < due
        assert time.monotonic() < deadline, f"{found} of {due} are counted"
        time.sleep(2)
    while (found := archived(stack)) != RECEIPTS:
        assert time.monotonic() < deadline, f"{found} of {RECEIPTS} are archived"
        time.sleep(2)

    log = (stack.settings.home / "logs" / "speed.log").read_text()
    assert "speed.micro_batch_too_large" in log
    assert "speed.micro_batches_as_usual" in log


def archived(stack: Stack) -> int:
    """The events that the archive has; `reconcile` fails if one that it has passed is missing or there twice."""
    [events] = [each["events"] for each in stack.galatea("reconcile")["topics"] if each["topic"] == TOPIC] or [0]
    return int(events)


def shown(stack: Stack) -> float | None:
    """The sum of the store; None if nothing is known of it yet."""
    question = {"store": STORE, "grain": "total", **around_now()}
    answer = stack.request("GET", "/v1/metrics/net_sales", params=question)
    if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:  # no generation has read everything yet
        return None
    assert answer.status_code == HTTPStatus.OK, answer.text
    series = answer.json()["series"]
    value: float | None = series[0]["points"][0]["value"] if series else None
    return value
