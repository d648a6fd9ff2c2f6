"""The columnar reader gives what `parse` gives, or leaves it to it: every column of every record is equal."""

import os
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.fields import Label, Minor, Scaled
from master_dataset.parsing.columnar.columns import column_types
from master_dataset.parsing.columnar.reader import WORTHWHILE, columnar_reader
from master_dataset.parsing.results import InvalidRecordError
from master_dataset.parsing.rows import EVENT, read_singly, rows
from master_dataset.registry.stores import Currency, Store
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.ingest.ingest import EventValidator
from tests.support.corpus.case import by_hand
from tests.support.corpus.fuzz import BEGIN_US, HOUR_US, Fuzz, terms_of, terms_until
from tests.support.corpus.generated import generated
from tests.support.examples import examples

SOURCES = registered_sources()
SEED, RECORDS = os.environ.get("FUZZ_SEED", "1"), int(os.environ.get("FUZZ_RECORDS", "1000000"))
KWD = Currency("KWD", 3)
TAKES_LONG = 10_000
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def sure_records(source: Source[Any], batches: Iterable[pa.RecordBatch]) -> float:
    """Compare both readers. Returns how many of a hundred events were read by columns."""
    reader = columnar_reader(source)
    assert reader is not None
    sure = events = 0
    for batch in batches:
        singly = read_singly(source, batch, terms_until)
        (by_columns,) = rows(source, iter([batch]), terms_until)
        assert batch.num_rows >= WORTHWHILE
        if not by_columns.equals(singly):
            explain(batch, singly, by_columns)
        events += singly["kind"].to_pylist().count(EVENT)
        stamps = batch["timestamp"].cast(pa.int64()).fill_null(-(2**63)).to_numpy()
        sure += len(reader.events(batch["value"], terms_of, stamps).at)
    return 100 * sure / events


def explain(batch: pa.RecordBatch, singly: pa.RecordBatch, by_columns: pa.RecordBatch) -> None:
    for value, one, other in zip(batch["value"].to_pylist(), singly.to_pylist(), by_columns.to_pylist(), strict=True):
        assert other == one, value
    assert by_columns.schema == singly.schema
    raise AssertionError("the batches differ, though their rows do not")


@each_source
def test_fuzzed_records_are_read_alike(source: Source[Any]) -> None:
    sure_records(source, Fuzz(source, SEED).batches(1_000, 250))
    assert sure_records(source, Fuzz(source, SEED, odd=2).batches(500, 500)) > 50


def test_records_without_a_time_of_receipt_are_read_alike() -> None:
    (batch,) = Fuzz(POS_TRANSACTIONS, SEED, odd=4).batches(WORTHWHILE, WORTHWHILE)
    stamps = [stamp if number % 2 else None for number, stamp in enumerate(batch["timestamp"].to_pylist())]
    at = batch.schema.get_field_index("timestamp")

    sure_records(
        POS_TRANSACTIONS, [batch.set_column(at, batch.schema.field(at), pa.array(stamps, batch.schema.types[at]))]
    )


def test_the_corpus_is_read_alike() -> None:
    cases = (*by_hand(), *generated())
    values: list[bytes | None] = [case.value for case in cases if len(case.value) < TAKES_LONG]

    sure_records(POS_TRANSACTIONS, [Fuzz(POS_TRANSACTIONS, SEED).batch(values)])


@each_source
def test_many_events_of_a_request_are_validated_as_each_alone_is(source: Source[Any]) -> None:
    values = [value for value in Fuzz(source, SEED, odd=4).values(300) if value is not None]
    stores = {"1": Store("1", "UTC", tenant="ours"), "2": Store("2", "Asia/Tokyo", tenant="others")}
    validator = EventValidator(source, stores, "ours", BEGIN_US + HOUR_US)

    assert validator.validate(values) == [*chain.from_iterable(validator.validate([value]) for value in values)]


@pytest.mark.parametrize("field", [Scaled(decimals=0), Scaled(decimals=3), Scaled(decimals=6, below=10**18), Minor()])
@given(texts=st.lists(st.from_regex(r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?", fullmatch=True), min_size=1))
@settings(max_examples=examples(1_000))
def test_a_sure_number_is_exact(field: Scaled | Minor, texts: list[str]) -> None:
    types = column_types({"number": field})
    assert types is not None

    column = types["number"].column(list(map(float, texts)), np.full(len(texts), KWD.digits))

    sure = column.sure
    assert sure is not None
    for text, number, is_sure in zip(texts, column.values.to_pylist(), sure, strict=True):
        try:
            expected = field.read(Decimal(text), KWD)
        except InvalidRecordError:
            expected = None
        assert (number if is_sure else None) == expected


@pytest.mark.parametrize("topic", ["people_counts", "wifi_sightings", "staff_hours"])
def test_a_source_without_derivation_by_columns_derives_one_record_after_the_other(topic: str) -> None:
    sure_records(replace(SOURCES[topic], topic="new"), Fuzz(SOURCES[topic], SEED).batches(500, 250))


def test_a_source_that_cannot_be_read_by_columns_is_read_one_by_one() -> None:
    class Loud(Label):
        """A type without a column: it may read otherwise than the one that it is made of."""

    lines = replace(POS_TRANSACTIONS, topic="new")
    loud = replace(SOURCES["people_counts"], topic="new", fields={**SOURCES["people_counts"].fields, "line": Loud()})
    (batch,) = Fuzz(POS_TRANSACTIONS, SEED).batches(WORTHWHILE, WORTHWHILE)

    assert columnar_reader(lines) is None
    assert columnar_reader(loud) is None
    assert next(rows(lines, iter([batch]), terms_until)).equals(read_singly(lines, batch, terms_until))


@pytest.mark.nightly
@each_source
def test_a_million_fuzzed_records_are_read_alike(source: Source[Any]) -> None:
    each = RECORDS // len(SOURCES) // 2

    for odd in (4, 40):
        sure_records(source, Fuzz(source, SEED, odd).batches(each, 1_000))
