"""A receipt that is posted over REST is found again, by its trace, in what archive and speed layer did with it."""

import time
from datetime import UTC, datetime
from uuid import uuid4

import orjson

from tests.integration.conftest import PATIENCE_SECONDS, Stack
from tests.support.corpus.case import receipt
from tests.support.otlp_receiver import OtlpReceiver, ReceivedSpan

CALLER = "00f067aa0ba902b7"


def posted(stack: Stack, traceparent: str) -> None:
    happened_at = orjson.dumps(datetime.now(UTC)).decode()
    answer = stack.request(
        "POST",
        "/v1/events/pos_transactions",
        content=receipt({"happened_at": happened_at, "transaction_id": f'"{uuid4().hex}"'}),
        headers={"Content-Type": "application/json", "traceparent": traceparent},
    )
    assert answer.status_code == 202, answer.text


def spans_about(received: OtlpReceiver, trace: str) -> dict[str, ReceivedSpan]:
    """The spans of a trace, and those that are linked to it, by their names."""
    return {each.name: each for each in list(received.spans) if trace == each.trace or trace in each.links}


def test_the_trace_of_a_posted_receipt_leads_to_its_micro_batches(stack: Stack, otlp: OtlpReceiver) -> None:
    trace, unsampled = uuid4().hex, uuid4().hex
    posted(stack, f"00-{unsampled}-{CALLER}-00")
    posted(stack, f"00-{trace}-{CALLER}-01")

    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found := spans_about(otlp, trace)) < 4:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)

    assert {name: each.process for name, each in found.items()} == {
        "POST /v1/events/{source}": "galatea-api",
        "send pos_transactions": "galatea-api",
        "archive pos_transactions": "galatea-archive",
        "count": "galatea-speed",
    }
    request, sending = found["POST /v1/events/{source}"], found["send pos_transactions"]
    assert (request.parent, sending.parent) == (CALLER, request.id)
    for process in ("archive pos_transactions", "count"):
        assert trace in found[process].links
        assert found[process].trace != trace
    assert spans_about(otlp, unsampled) == {}
    log = (stack.settings.home / "logs" / "archive.log").read_text()
    assert f"trace_id={found['archive pos_transactions'].trace}" in log
