"""An operator without a shell: recompute, look at what it corrects, ask the past and go back to it, all over REST."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psutil
import pytest

from deploy.local.records import Records
from tests.integration.conftest import PATIENCE_SECONDS, UNTIL_A_CUT_COVERS_IT, Stack, around_now
from tests.support import receipt

STORE = "asked over REST"


def post(stack: Stack, path: str, **said: object) -> Any:
    answer = stack.request("POST", path, json={"reason": "a test"} | said)
    assert answer.is_success, answer.text
    return answer.json()


def requested(stack: Stack) -> str:
    """The id of a recompute that was just asked for."""
    id_: str = post(stack, "/v1/recomputes")["id"]
    return id_


def record(stack: Stack, id_: str, is_so: Callable[[Any], bool]) -> Any:
    """The recompute as soon as that is so, however often the api has to be started again meanwhile."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    found = None
    while found is None or not is_so(found):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
        with suppress(httpx.TransportError):
            found = stack.get(f"/v1/recomputes/{id_}")
    return found


def killed(stack: Stack, id_: str) -> None:
    """The api is killed while its runner works on that recompute; nothing of it stays."""
    record(stack, id_, lambda found: found["state"] != "asked")
    pid = Records(stack.settings.home).pid("api")
    assert pid is not None
    children = psutil.Process(pid).children(recursive=True)
    assert children
    os.kill(pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_SECONDS)
    assert alive == []


def has_ended(found: Any) -> bool:
    return found["ended_at"] is not None


def ingested(stack: Stack, minor: int, age: timedelta) -> None:
    happened_at = (datetime.now(UTC) - age).isoformat(timespec="milliseconds")
    stack.ingest("pos_transactions", [receipt(happened_at, minor=minor, number=minor, store=STORE)])
    time.sleep(UNTIL_A_CUT_COVERS_IT)


def sold(stack: Stack, **arguments: object) -> tuple[float, int]:
    """The store's sales and how many events wait."""
    question = {"store": STORE, "grain": "total", **around_now(), **arguments}
    body = stack.get("/v1/metrics/net_sales", **question)
    return body["series"][0]["points"][0]["value"], body["as_of"]["waiting_for_batch"]


def corrected(stack: Stack, **arguments: object) -> list[tuple[str, int, str]]:
    """Of the view `sales_by_till`: state, difference, cause."""
    body = stack.get("/v1/corrections", store=STORE, view="sales_by_till", **arguments)
    assert body["pending"] is False
    return [(row["state"], row["difference"], row["cause"]) for row in body["corrections"]]


@pytest.mark.nightly
def test_an_operator_recomputes_and_goes_back_although_the_api_is_killed(stack: Stack) -> None:
    ingested(stack, 100, timedelta(seconds=1))
    first = record(stack, requested(stack), has_ended)["publication"]
    ingested(stack, 25, timedelta(hours=40))  # too old for speed: it waits
    waits = [("receipts", 1, "waited"), ("sale_tx", 1, "waited"), ("net_sales", 25, "waited")]

    before = sold(stack)
    id_ = requested(stack)
    killed(stack, id_)
    interrupted = record(stack, id_, has_ended)
    stack.galatea("rebuild", "--id", id_)
    second = record(stack, id_, has_ended)["publication"]
    published = (corrected(stack, publication=second), sold(stack), sold(stack, as_of=first), sold(stack, as_of=second))
    tried = post(stack, f"/v1/publications/{first}/rollback", dry_run=True)
    back = post(stack, f"/v1/publications/{first}/rollback")
    after = (sold(stack), sold(stack, as_of=second), sold(stack, as_of=back["publication"]))

    assert before == (1.0, 1)
    assert (interrupted["state"], interrupted["problem"]["code"]) == ("failed", "recompute_interrupted")
    assert published == (waits, (1.25, 0), (1.0, 0), (1.25, 0))
    assert (tried["dry_run"], tried["restores"], back["restores"]) == (True, first, first)
    assert after == ((1.0, 1), (1.25, 0), (1.0, 0))
    newest = stack.get("/v1/publications", limit=1)["publications"][0]
    assert (newest["publication"], newest["restores"], newest["by"]) == (back["publication"], first, "operator")
