"""An operator without a shell: recompute, look at what it corrects, ask the past and go back to it, all over REST."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now
from tests.world import receipt

STORE = "asked over REST"
UNTIL_A_CUT_COVERS_IT = 3.0
"""More than skew and epoch of the stack: what was received that long ago is before the newest cut."""


def post(stack: Stack, path: str, **said: object) -> Any:
    key = (stack.settings.home / "operator.key").read_text()
    url = f"http://127.0.0.1:{stack.settings.api_port}{path}"
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx.post(url, json={"reason": "a test"} | said, headers=headers, timeout=60, trust_env=False)
    assert answer.is_success, answer.text
    return answer.json()


def recomputed(stack: Stack, **asked: object) -> Any:
    """The record of a recompute that was asked for and has ended."""
    id_ = post(stack, "/v1/recomputes", **asked)["id"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := stack.get(f"/v1/recomputes/{id_}"))["ended_at"] is None:
        assert time.monotonic() < deadline, found
        time.sleep(0.5)
    assert found["state"] != "failed", found
    return found


def ingested(stack: Stack, folder: Path, minor: int, age: timedelta) -> None:
    source = folder / f"{minor}.jsonl"
    happened_at = (datetime.now(UTC) - age).isoformat(timespec="milliseconds")
    source.write_bytes(receipt(happened_at, minor=minor, number=minor, store=STORE) + b"\n")
    stack.galatea("ingest", "pos_transactions", str(source))
    time.sleep(UNTIL_A_CUT_COVERS_IT)


def sold(stack: Stack, **asked: object) -> tuple[float, int]:
    """The store's sales and how many events wait."""
    question = {"store": STORE, "grain": "total", **around_now(), **asked}
    body = stack.get("/v1/metrics/net_sales", **question)
    return body["series"][0]["points"][0]["value"], body["as_of"]["waiting_for_batch"]


def corrected(stack: Stack, **asked: object) -> list[tuple[str, int, str]]:
    """Of the view `sales_by_till`: state, difference, cause."""
    body = stack.get("/v1/corrections", store=STORE, view="sales_by_till", **asked)
    assert body["pending"] is False
    return [(row["state"], row["difference"], row["cause"]) for row in body["corrections"]]


def test_an_operator_recomputes_looks_at_the_corrections_and_goes_back(stack: Stack, tmp_path: Path) -> None:
    ingested(stack, tmp_path, 100, timedelta(seconds=1))
    first = recomputed(stack)["publication"]
    ingested(stack, tmp_path, 25, timedelta(hours=40))  # too old for speed: it waits
    waits = [("receipts", 1, "waited"), ("sale_tx", 1, "waited"), ("net_sales", 25, "waited")]

    before = sold(stack)
    second = recomputed(stack)["publication"]
    published = (corrected(stack, publication=second), sold(stack), sold(stack, as_of=first), sold(stack, as_of=second))
    tried = post(stack, f"/v1/publications/{first}/rollback", dry_run=True)
    back = post(stack, f"/v1/publications/{first}/rollback")
    after = (sold(stack), sold(stack, as_of=second), sold(stack, as_of=back["publication"]))

    assert before == (1.0, 1)
    assert published == (waits, (1.25, 0), (1.0, 0), (1.25, 0))
    assert (tried["dry_run"], tried["restores"], back["restores"]) == (True, first, first)
    assert after == ((1.0, 1), (1.25, 0), (1.0, 0))
    newest = stack.get("/v1/publications", limit=1)["publications"][0]
    assert (newest["publication"], newest["restores"], newest["by"]) == (back["publication"], first, "operator")
