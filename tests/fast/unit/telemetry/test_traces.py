"""Spans of requests, answers, records and micro-batches; and that none of them holds data."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from structlog.testing import capture_logs

from deploy.services.runner import _add_trace
from deploy.settings import Settings
from deploy.telemetry.traces import install_traces, parsed_headers
from master_dataset import tracing
from master_dataset.errors import OperatorError
from tests.fast.unit.telemetry.conftest import Spans
from tests.support import World, receipt
from tests.support.otlp_receiver import otlp_receiver
from tests.support.world_api import OPERATOR_KEY, Asking

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{CALLER}-01", f"00-{TRACE}-{CALLER}-00"
SALES = "/v1/metrics/net_sales?store=1&from=2026-11-20&to=2026-11-22&grain=day"
RECEIPT = receipt("2026-11-21T09:00:00Z", minor=100)


@pytest.fixture
def world() -> World:
    world = World()
    world.rebuild("2026-11-21T10:00:00Z")
    return world


def ids(span: ReadableSpan) -> tuple[str, str, str]:
    """Trace, span and parent."""
    assert span.context
    parent = f"{span.parent.span_id:016x}" if span.parent else ""
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}", parent


def named(spans: list[ReadableSpan], name: str) -> ReadableSpan:
    [found] = [each for each in spans if each.name == name]
    return found


def test_a_post_continues_the_trace_of_its_caller_into_the_header_of_each_record(
    world: World, sampled_spans: Spans
) -> None:
    asking = Asking(world)

    response = asking.sent(RECEIPT, traceparent=SAMPLED)

    assert response.status_code == 202
    found = sampled_spans.all()
    request, sending = named(found, "POST /v1/events/{source}"), named(found, "send pos_transactions")
    assert ids(request)[::2] == (TRACE, CALLER)
    assert ids(sending)[::2] == (TRACE, ids(request)[1])
    assert (request.kind, sending.kind) == (SpanKind.SERVER, SpanKind.PRODUCER)
    assert request.attributes == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "http.route": "/v1/events/{source}",
        "http.response.status_code": 202,
    }
    assert sending.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "pos_transactions",
        "messaging.batch.message_count": 1,
    }
    [record] = asking.broker.topics["pos_transactions"]
    assert record.headers == (("traceparent", f"00-{TRACE}-{ids(sending)[1]}-01".encode()),)


@pytest.mark.parametrize("traceparent", [NOT_SAMPLED, "", "00-nonsense", f"00-{'0' * 32}-{CALLER}-01"])
def test_without_a_sampled_trace_records_have_no_header_and_nothing_is_exported(
    world: World, sampled_spans: Spans, traceparent: str
) -> None:
    asking = Asking(world)

    response = asking.sent(RECEIPT, traceparent=traceparent)

    assert response.status_code == 202
    assert asking.broker.topics["pos_transactions"][0].headers == ()
    assert sampled_spans.all() == []


def test_the_record_is_the_same_with_a_trace_and_without(world: World, spans: Spans) -> None:
    traced = Asking(world)
    traced.sent(RECEIPT)
    tracing.install(None)
    plain = Asking(world)
    plain.sent(RECEIPT)

    [with_trace], [without] = (each.broker.topics["pos_transactions"] for each in (traced, plain))
    assert with_trace.headers != without.headers == ()
    assert with_trace._replace(headers=()) == without
    assert spans.all() != []


@pytest.mark.parametrize("by", ["store", "total"])
def test_an_answer_has_a_span_for_each_of_its_stages(world: World, spans: Spans, by: str) -> None:
    response = Asking(world).request("GET", f"{SALES}&by={by}")

    assert response.status_code == 200
    found = spans.all()
    request, answer = named(found, "GET /v1/metrics/{metric}"), named(found, "answer")
    stages = {each.name for each in found if ids(each)[2] == ids(answer)[1]}
    assert stages == {"resolve", "fetch", "aggregate", "evaluate", "render"}
    assert ids(named(found, "read_version"))[2] == ids(answer)[2] == ids(request)[1]
    assert {ids(each)[0] for each in found} == {ids(request)[0]}


def test_no_span_holds_data_of_the_request(world: World, spans: Spans) -> None:
    canary = "canary-51d0"
    asking = Asking(world)
    asking.request("GET", f"/v1/metrics/net_sales?store={canary}&range=today", headers={"User-Agent": canary})
    asking.request("GET", f"/v1/{canary}", headers={"Authorization": f"Bearer {canary}"})
    asking.sent(receipt("2026-11-21T09:00:00Z", minor=100, till=canary))
    asking.request("GET", f"/v1/publications/{canary}", headers={"Authorization": f"Bearer {OPERATOR_KEY}"})

    found = spans.all()

    assert len(found) >= 5
    assert canary not in "".join(each.to_json() for each in found)
    assert OPERATOR_KEY not in "".join(each.to_json() for each in found)


def test_what_fails_says_the_type_of_the_error_and_never_its_words(world: World, spans: Spans) -> None:
    asking = Asking(world)

    def fails(_: object) -> None:
        raise KeyError("canary-9e41")

    asking.broker.says = fails
    assert asking.sent(RECEIPT).status_code == 500

    found = spans.all()
    sending, request = named(found, "send pos_transactions"), named(found, "POST /v1/events/{source}")
    assert (sending.attributes or {})["error.type"] == "KeyError"
    assert (request.status.status_code, sending.status.status_code) == (StatusCode.ERROR, StatusCode.ERROR)
    assert "canary" not in "".join(each.to_json() for each in found)


def test_a_micro_batch_is_linked_to_the_traces_of_its_records_and_only_then_always_sampled(
    sampled_spans: Spans,
) -> None:
    with tracing.micro_batch("archive a_topic", {"messaging.system": "kafka"}) as linked:
        linked.links = {SAMPLED.encode()}
    with tracing.micro_batch("archive a_topic", {}) as alone:
        pass

    [span] = sampled_spans.all()
    assert [f"{each.context.trace_id:032x}" for each in span.links] == [TRACE]
    assert (span.parent, span.kind) == (None, SpanKind.CONSUMER)
    assert linked.log_ids == {"trace_id": ids(span)[0], "span_id": ids(span)[1]}
    assert alone.log_ids == {}
    assert ids(span)[0] != TRACE


def test_a_micro_batch_that_fails_is_recorded_and_fails_all_the_same(spans: Spans) -> None:
    with pytest.raises(RuntimeError), tracing.micro_batch("count", {}):
        raise RuntimeError("canary-33fa")

    [span] = spans.all()
    assert (span.attributes or {})["error.type"] == "RuntimeError"
    assert "canary" not in span.to_json()


def test_log_events_within_a_span_name_it(spans: Spans) -> None:
    with tracing.span("a"):
        event = _add_trace(None, "info", {"event": "something"})
    outside = _add_trace(None, "info", {"event": "something"})

    [span] = spans.all()
    assert event == {"event": "something", "trace_id": ids(span)[0], "span_id": ids(span)[1]}
    assert outside == {"event": "something"}


def test_spans_arrive_over_http_with_the_headers_of_the_settings() -> None:
    with otlp_receiver() as receiver:
        settings = Settings(
            traces_endpoint=receiver.endpoint, traces_sample_ratio=1, traces_headers='{"X-Token": "a secret"}'
        )
        close = install_traces(settings, "api")
        with tracing.span("a"), tracing.span("b"):
            pass
        tracing.install(None)
        close()

    assert [(each.process, each.name) for each in receiver.spans] == [("galatea-api", "b"), ("galatea-api", "a")]
    assert receiver.spans[0].parent == receiver.spans[1].id
    assert receiver.headers["x-token"] == "a secret"


def test_a_backend_that_is_down_stops_nothing(world: World) -> None:
    settings = Settings(traces_endpoint="http://127.0.0.1:9/v1/traces", traces_sample_ratio=1)
    with capture_logs() as logs:
        close = install_traces(settings, "api")
        response = Asking(world).sent(RECEIPT)
        tracing.install(None)
        close()

    assert response.status_code == 202
    assert {each["event"] for each in logs} <= {"telemetry.not_sent"}


@pytest.mark.parametrize("text", ["canary", "[]", '{"a": 1}'])
def test_headers_that_are_no_json_object_are_refused_without_being_shown(text: str) -> None:
    with pytest.raises(OperatorError) as refused:
        parsed_headers(text)

    assert "canary" not in str(refused.value)
