"""The laws of `parse`, of every source: it never raises, both readers agree, spelling changes nothing, events fit."""

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from galatea.cli.reference.interfaces import schema
from master_dataset.parsing import readers
from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.parse import key_of, parse
from master_dataset.parsing.readers import FastReader
from master_dataset.parsing.results import DeadLetter, Event, InvalidRecordError
from master_dataset.registry.stores import Currency, Terms
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.support.corpus.records import anything, damaged, good
from tests.support.examples import examples

CURRENCIES = {"1": Currency("EUR", 2), "2": Currency("JPY", 0), "3": Currency("KWD", 3)}
SOURCES = registered_sources()
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
Parsed = Event[Any] | DeadLetter


def terms_of(store: str) -> Terms:
    return Terms(CURRENCIES.get(store, CURRENCIES["1"]))


def parsed(source: Source[Any], value: bytes) -> Parsed:
    return parse(source, value, terms_of, received_us=4_000_000_000_000_000)


@cache
def validator(topic: str) -> Draft202012Validator:
    return Draft202012Validator(schema(SOURCES[topic], ""))


def number(text: str) -> int | Decimal:
    """Exactly, as a validator should; a whole one is an integer however it is written."""
    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else exact


@each_source
@given(data=st.data())
@settings(max_examples=examples(60))
def test_whatever_the_bytes_they_are_an_event_or_a_dead_letter(source: Source[Any], data: st.DataObject) -> None:
    value = data.draw(anything(source))

    assert isinstance(parsed(source, value), Event | DeadLetter)


@each_source
@given(data=st.data())
@settings(max_examples=examples(60))
def test_the_quick_reader_gives_what_the_careful_one_gives_or_nothing(source: Source[Any], data: st.DataObject) -> None:
    value = data.draw(anything(source))

    quick = FastReader(source).read(value, terms_of)

    try:
        assert quick in (None, readers.read(source, value, terms_of))
    except InvalidRecordError:
        assert quick is None


@each_source
@given(data=st.data())
@settings(max_examples=examples(100))
def test_the_quick_reader_reads_every_record_of_good_fields(source: Source[Any], data: st.DataObject) -> None:
    value = data.draw(good(source))

    assert FastReader(source).read(value, terms_of) is not None


@each_source
def test_the_example_of_a_source_is_an_event(source: Source[Any]) -> None:
    value = json.dumps(source.example).encode()

    event = parsed(source, value)

    assert isinstance(event, Event)
    assert list(validator(source.topic).iter_errors(json.loads(value, parse_float=number))) == []
    assert key_of(source)(value) == event.store.encode()
    assert parsed(source, mask_value(source, value)) == event


@each_source
@given(data=st.data())
@settings(max_examples=examples(60))
def test_whatever_is_an_event_fits_the_schema(source: Source[Any], data: st.DataObject) -> None:
    value = data.draw(good(source) | damaged(source))

    if isinstance(parsed(source, value), Event):
        said = json.loads(value, parse_float=number)
        assert list(validator(source.topic).iter_errors(said)) == []


@each_source
@given(data=st.data())
@settings(max_examples=examples(100))
def test_an_event_is_keyed_by_its_store(source: Source[Any], data: st.DataObject) -> None:
    value = data.draw(anything(source))
    event = parsed(source, value)

    if isinstance(event, Event):
        assert key_of(source)(value) == event.store.encode()


@each_source
@given(
    data=st.data(),
    shuffle=st.randoms(use_true_random=False),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
)
@settings(max_examples=examples(100))
def test_order_spacing_escapes_and_unknown_fields_change_no_event(
    source: Source[Any], data: st.DataObject, shuffle: Random, indent: int | None, *, ascii_only: bool
) -> None:
    def reordered(fields: Mapping[str, Any]) -> dict[str, Any]:
        pairs = [*fields.items(), ("unknown", {"a": [1, "b"]})]
        shuffle.shuffle(pairs)
        return {name: [reordered(line) for line in each] if isinstance(each, list) else each for name, each in pairs}

    value = data.draw(good(source))

    rewritten = json.dumps(reordered(json.loads(value)), indent=indent, ensure_ascii=ascii_only).encode()

    assert parsed(source, rewritten) == parsed(source, value)


@each_source
@given(data=st.data())
@settings(max_examples=examples(100))
def test_two_events_have_one_identity_only_if_what_identifies_them_is_equal(
    source: Source[Any], data: st.DataObject
) -> None:
    values = data.draw(st.lists(good(source), min_size=2, max_size=6))
    whole = [value for value in values if isinstance(parsed(source, value), Event)]

    read = [readers.read(source, value, terms_of)[0] for value in whole]

    named = {tuple(record[name] for name in source.identity) for record in read}
    assert len({parsed(source, value).identity for value in whole}) == len(named)  # type: ignore[union-attr]


@each_source
@given(data=st.data())
@settings(max_examples=examples(100))
def test_what_is_hidden_of_an_event_is_nothing_that_it_says(source: Source[Any], data: st.DataObject) -> None:
    value = data.draw(good(source) | damaged(source))

    event = parsed(source, value)

    if isinstance(event, Event):
        assert parsed(source, mask_value(source, value)) == event


@given(value=good(POS_TRANSACTIONS))
@settings(max_examples=examples(100))
def test_the_sums_of_a_receipt_fit_together(value: bytes) -> None:
    event = parsed(POS_TRANSACTIONS, value)

    if isinstance(event, DeadLetter):  # of a rule between fields
        assert event.field.endswith("/discount")
        return
    sold = event.payload
    with_sku = [line for line in sold.lines if line.sku is not None]
    assert sold.gross_sales - sold.returns_value == sum(line.total for line in sold.lines)
    assert [sold.is_sale, sold.is_return, sold.is_zero].count(True) == 1
    assert not sold.is_exchange or sold.is_sale
    assert sum(item.net_sales for item in sold.items) == sum(line.total for line in with_sku)
    assert len(sold.items) == len({line.sku for line in with_sku})
    assert sold.line_count == len(sold.lines)
    assert min(sold.units_sold, sold.units_returned) >= 0
    assert (sold.discount is None) == (sold.discount_returned is None)
    assert min(sold.discount or 0, sold.discount_returned or 0) >= 0
