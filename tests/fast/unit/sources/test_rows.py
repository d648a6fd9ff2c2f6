"""One row for each record, in order, whatever the record is."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from master_dataset.parsing.columnar.reader import WORTHWHILE
from master_dataset.parsing.rows import HEADERS, INSTANT, output_schema, rows
from master_dataset.sources.pos_transactions import MOST_TITLE, POS_TRANSACTIONS
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

RECEIVED = datetime(2026, 3, 7, 9, 6, tzinfo=UTC)
Headers = list[tuple[str, bytes]] | None


def batch(*records: tuple[bytes | None, Headers]) -> pa.RecordBatch:
    count = len(records)
    columns = {
        "key": pa.array([b"1"] * count, pa.binary()),
        "value": pa.array([value for value, _ in records], pa.binary()),
        "topic": pa.array(["pos_transactions"] * count, pa.string()),
        "partition": pa.array([2] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([RECEIVED] * count, INSTANT),
        "headers": pa.array([headers for _, headers in records], HEADERS),
    }
    return pa.RecordBatch.from_pydict(columns)


def parsed(*records: tuple[bytes | None, Headers]) -> list[dict[str, Any]]:
    (out,) = rows(POS_TRANSACTIONS, iter([batch(*records)]), default_terms)
    out.validate(full=True)
    assert out.schema == output_schema(POS_TRANSACTIONS)
    listed: list[dict[str, Any]] = out.to_pylist()
    return listed


def test_every_record_is_one_row_in_its_order() -> None:
    future = receipt({"happened_at": '"2026-03-07T10:06:00.001Z"'})

    out = parsed((receipt(), None), (None, None), (future, None), (b"{", [("galatea-marker", b"")]), (receipt(), []))

    assert [row["kind"] for row in out] == ["event", "dead_letter", "dead_letter", "marker", "event"]
    assert [row["reason"] for row in out] == [None, "empty_value", "from_the_future", None, None]
    assert [row["offset"] for row in out] == [0, 1, 2, 3, 4]


def test_an_event_has_its_place_its_fact_and_its_bytes() -> None:
    (row,) = parsed((receipt(), None))

    assert (row["topic"], row["partition"], row["received_at"]) == ("pos_transactions", 2, RECEIVED)
    assert (row["store"], row["happened_at"], row["day"]) == (
        "1",
        datetime(2026, 3, 7, 9, 5, tzinfo=UTC),
        date(2026, 3, 7),
    )
    assert (row["gross_sales"], row["is_sale"], row["flags"]) == (218, True, [])
    assert row["items"] == [{"sku": "8580001", "net_sales": 218, "net_units": 2, "is_sale": True}]
    assert row["lines"] == [
        {"title": "Milk 1 l", "price_micro": 1090000, "amount": 2000, "total": 218, "sku": "8580001"}
    ]
    assert (row["key"], row["value"], row["headers"]) == (b"1", receipt(), None)


def test_a_dead_letter_has_its_reason_and_its_bytes_and_nothing_else() -> None:
    headers = [("schema", b"nothing")]

    (row,) = parsed((receipt(), headers))

    assert (row["reason"], row["field"]) == ("unknown_schema", "")
    assert row["headers"] == [{"key": "schema", "value": b"nothing"}]
    assert {row[name] for name in ("store", "day", "identity", "gross_sales", "lines", "items", "flags")} == {None}


def test_no_lines_are_an_empty_list_and_no_event_is_none() -> None:
    empty, broken = parsed((receipt({"transactions": "[]"}), None), (b"{", None))

    assert (empty["lines"], empty["items"], empty["flags"]) == ([], [], ["empty_receipt"])
    assert broken["lines"] is None


def test_a_batch_of_no_records_is_a_batch_of_no_rows() -> None:
    assert parsed() == []


def test_a_slice_of_a_batch_and_a_source_without_headers_are_read_alike() -> None:
    whole = batch((receipt(), None), (b"{", None), (receipt(), None)).drop_columns(["headers"])

    (out,) = rows(POS_TRANSACTIONS, iter([whole.slice(1, 2)]), default_terms)

    assert out.column("kind").to_pylist() == ["dead_letter", "event"]
    assert out.column("offset").to_pylist() == [1, 2]


@pytest.mark.parametrize("records", [1, WORTHWHILE], ids=["singly", "by columns"])
def test_a_title_is_cut_but_in_the_bytes_that_were_sent(records: int) -> None:
    title = "\U0001f95b" * MOST_TITLE
    sent = receipt({"transactions": json.dumps([{"title": title + "a" * 900_000, "price": 1, "amount": 1}])})

    out = parsed(*[(sent, None)] * records)

    assert len(out) == records
    for row in out:
        assert row["value"] == sent
        assert [line["title"] for line in row["lines"]] == [title]
