"""What a record is, besides its value: a marker, a record of another schema, one whose clock runs fast."""

import json

import pytest

from master_dataset.parsing.parse import Headers, is_marker, key_of, parse
from master_dataset.parsing.results import DeadLetter, Event, Reason
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.support.corpus.case import receipt


def reason_of(value: bytes | None, headers: Headers = ()) -> Reason | None:
    parsed = parse(POS_TRANSACTIONS, value, lambda _: DEFAULT_TERMS, headers=headers)
    return parsed.reason if isinstance(parsed, DeadLetter) else None


@pytest.mark.parametrize("name", [b"pos", b"", None, b"\xff", b"POS_TRANSACTIONS"])
def test_a_schema_header_that_names_no_source_makes_a_dead_letter(name: bytes | None) -> None:
    assert reason_of(receipt(), [("schema", name)]) is Reason.UNKNOWN_SCHEMA


def test_a_schema_header_of_a_source_and_unknown_headers_change_nothing() -> None:
    headers = [("schema", b"pos_transactions"), ("replay_of", b"pos_transactions/2/88120"), ("x", None)]

    assert reason_of(receipt(), headers) is None


def test_a_tombstone_has_no_value() -> None:
    assert reason_of(None) is Reason.EMPTY_VALUE


def test_a_marker_is_known_by_its_header() -> None:
    assert is_marker([("a", b""), ("galatea-marker", None)])
    assert not is_marker([("galatea", b"galatea-marker")])


def test_the_same_sale_written_differently_is_a_duplicate() -> None:
    body = json.loads(receipt())
    rewritten = json.dumps(dict(reversed(body.items())) | {"unknown": [1.0], "operation_id": "1"}, indent=3).encode()

    first, second = (parse(POS_TRANSACTIONS, value, lambda _: DEFAULT_TERMS) for value in (receipt(), rewritten))

    assert first == second


@pytest.mark.parametrize(
    "put", [{"price": "1.10"}, {"title": '"Milk"'}, {"sku": "null"}, {"total": "2.19"}, {"amount": "3"}]
)
def test_the_same_identity_with_another_payload_is_a_conflict(put: dict[str, str]) -> None:
    first, second = (parse(POS_TRANSACTIONS, receipt(each), lambda _: DEFAULT_TERMS) for each in ({}, put))

    assert isinstance(first, Event)
    assert isinstance(second, Event)
    assert first.identity == second.identity
    assert first.payload_hash != second.payload_hash


def test_a_total_left_out_is_no_conflict_with_the_same_total_written() -> None:
    first, second = (
        parse(POS_TRANSACTIONS, each, lambda _: DEFAULT_TERMS) for each in (receipt(), receipt(drop=("total",)))
    )

    assert isinstance(first, Event)
    assert isinstance(second, Event)
    assert first.payload_hash == second.payload_hash


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (receipt(), b"1"),
        (receipt({"operation_id": '"Ko\\u0161ice"'}), "Košice".encode()),
        (receipt({"price": '"no"'}), b"1"),
        (receipt({"operation_id": "1.0"}), None),
        (receipt({"operation_id": '""'}), None),
        (receipt(drop=("operation_id",)), None),
        (b"{", None),
        (b"[" * 100_000, None),
        (b"\xff", None),
    ],
)
def test_a_record_is_keyed_by_its_store_where_one_can_be_read(value: bytes, key: bytes | None) -> None:
    assert key_of(POS_TRANSACTIONS)(value) == key
