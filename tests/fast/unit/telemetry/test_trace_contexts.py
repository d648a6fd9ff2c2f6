"""The header of a trace changes nothing of a record, and only valid sampled ones become links."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from master_dataset.kafka.partition_progress import count_received
from master_dataset.kafka.trace_contexts import TraceContextsParam, trace_contexts_of
from master_dataset.parsing.rows import HEADERS, rows
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.tracing import MOST_LINKS
from tests.support.corpus.case import by_hand, receipt
from tests.support.terms import default_terms

Headers = list[tuple[str, bytes | None]]
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE}-{SPAN}-01".encode()
RECEIVED = datetime(2026, 3, 7, 9, 6, tzinfo=UTC)


def records(values: list[tuple[bytes, Headers]]) -> pa.RecordBatch:
    """Records of one partition as Spark's source gives them."""
    number = len(values)
    headers = [[{"key": key, "value": value} for key, value in own] for _, own in values]
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"1"] * number, pa.binary()),
            "value": pa.array([value for value, _ in values], pa.binary()),
            "topic": pa.array(["pos_transactions"] * number),
            "partition": pa.array([0] * number, pa.int32()),
            "offset": pa.array(range(number), pa.int64()),
            "timestamp": pa.array([RECEIVED] * number, pa.timestamp("us", "UTC")),
            "headers": pa.array(headers, HEADERS),
        }
    )


def parsed(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    [table] = rows(POS_TRANSACTIONS, iter([batch]), default_terms)
    found: list[dict[str, Any]] = table.drop_columns(["headers"]).to_pylist()
    return found


def test_every_record_of_the_corpus_is_parsed_the_same_with_the_header_and_without() -> None:
    values = [case.value for case in by_hand()]
    markers: list[tuple[bytes, Headers]] = [(b"", [("galatea-marker", b"1")])]

    plain = records([(value, []) for value in values] + markers)
    header: Headers = [("traceparent", SAMPLED)]
    traced = records([(value, header) for value in values] + markers)

    assert len(values) > 100
    assert parsed(traced) == parsed(plain)
    assert count_received(traced) == count_received(plain) == Counter({0: len(values)})


def test_each_sampled_trace_is_found_once() -> None:
    other = SAMPLED.replace(b"4bf9", b"0000")
    batch = records(
        [
            (receipt(), [("traceparent", SAMPLED)]),
            (receipt(), []),
            (receipt(), [("schema", b"pos_transactions"), ("traceparent", other)]),
            (receipt(), [("traceparent", SAMPLED)]),
        ]
    )

    assert trace_contexts_of(batch) == {SAMPLED, other}


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\xff\x00",
        SAMPLED[:-1],
        SAMPLED.upper(),
        SAMPLED[:-2] + b"00",
        f"00-{'0' * 32}-{SPAN}-01".encode(),
        f"00-{TRACE}-{'0' * 16}-01".encode(),
        SAMPLED + b"\n",
    ],
)
def test_unsampled_traces_are_not_linked(value: bytes | None) -> None:
    assert trace_contexts_of(records([(receipt(), [("traceparent", value)])])) == frozenset()


def test_the_links_of_a_micro_batch_are_bounded_and_do_not_depend_on_the_order_of_tasks() -> None:
    param, many = TraceContextsParam(), [f"00-{number:032x}-{SPAN}-01".encode() for number in range(1, 200)]
    forward = backward = param.zero(frozenset())
    for each in many:
        forward = param.addInPlace(forward, frozenset([each]))
    for each in reversed(many):
        backward = param.addInPlace(backward, frozenset([each]))

    assert len(forward) == MOST_LINKS
    assert forward == backward == frozenset(many[:MOST_LINKS])
