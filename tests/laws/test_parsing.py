"""The laws of `parse`: it never raises, both readers agree, spelling changes nothing, and sums fit together."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.currency import Currency
from master_dataset.parsing import careful
from master_dataset.parsing.dead_letter import DeadLetter, Refused
from master_dataset.parsing.event import Event
from master_dataset.parsing.fast import FastReader
from master_dataset.parsing.key import key_of
from master_dataset.parsing.parse import parse
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS, Receipt
from master_dataset.terms import Terms
from tests.corpus.case import LINE, RECEIPT, receipt, written

FAST = FastReader(POS_TRANSACTIONS)
CURRENCIES = {"1": Currency("EUR", 2), "2": Currency("JPY", 0), "3": Currency("KWD", 3)}

SCRAPS = st.sampled_from(
    ["0", "-0", "1.5", "-1", "1e2", "1e-9", "1e400", "null", "true", '""', '"1"', '"a\\"b"', '"\\\\"', '"\\u00e9"',
     "[]", "{}", '{"a":1,"a":1}', "NaN", "01", '"\\ud800"', '"2026-03-07T09:05:00Z"',
     '"2026-03-07T09:05:00"', "9223372036854775808"]
)  # fmt: skip
NAMES = st.sampled_from([*RECEIPT, *LINE, "transactions", "unknown", 'a"b', "\\"])
DECIMALS = st.decimals(-1000, 1000, places=2, allow_nan=False)
TEXTS = st.text(max_size=8)
LINES = st.fixed_dictionaries(
    {"title": TEXTS.map(json.dumps), "price": DECIMALS.map(str), "amount": st.decimals(-50, 50, places=3).map(str)},
    optional={
        "total": st.integers(-10_000, 10_000).map(str),
        "sku": st.sampled_from(["null", '"a"', '"b"', '"\\u010d"']),
    },
)
RECEIPTS = st.builds(
    lambda ids, lines: receipt(ids | {"transactions": f"[{','.join(written(line) for line in lines)}]"}),
    st.fixed_dictionaries(
        {"operation_id": st.sampled_from(["1", '"2"', "3"]), "transaction_id": TEXTS.filter(bool).map(json.dumps)}
    ),
    st.lists(LINES, max_size=5),
)
DAMAGED = st.builds(receipt, st.dictionaries(NAMES, SCRAPS, max_size=3), st.lists(NAMES, max_size=1).map(tuple))
CUT = st.builds(
    lambda value, at, byte: value[:at] + byte + value[at + 1 :], RECEIPTS, st.integers(0, 400), st.binary(max_size=2)
)
DOUBLED = st.builds(lambda value, name, scrap: value[:-1] + f', "{name}": {scrap}}}'.encode(), RECEIPTS, NAMES, SCRAPS)
ANYTHING = st.one_of(st.binary(max_size=200), RECEIPTS, DAMAGED, CUT, DOUBLED)


def terms_of(store: str) -> Terms:
    return Terms(CURRENCIES.get(store, CURRENCIES["1"]))


def parsed(value: bytes | None) -> Event[Receipt] | DeadLetter:
    return parse(POS_TRANSACTIONS, value, terms_of, received_us=4_000_000_000_000_000)


@given(value=ANYTHING)
@settings(max_examples=400)
def test_whatever_the_bytes_they_are_an_event_or_a_dead_letter(value: bytes) -> None:
    assert isinstance(parsed(value), Event | DeadLetter)


@given(value=ANYTHING)
@settings(max_examples=400)
def test_the_quick_reader_gives_what_the_careful_one_gives_or_nothing(value: bytes) -> None:
    quick = FAST.read(value, terms_of)

    try:
        assert quick in (None, careful.read(POS_TRANSACTIONS, value, terms_of))
    except Refused:
        assert quick is None


@given(value=RECEIPTS)
def test_the_quick_reader_reads_every_plain_receipt(value: bytes) -> None:
    assert FAST.read(value, terms_of) is not None


@given(value=ANYTHING)
def test_an_event_is_keyed_by_its_store(value: bytes) -> None:
    event = parsed(value)

    if isinstance(event, Event):
        assert key_of(POS_TRANSACTIONS)(value) == event.store.encode()


@given(
    value=RECEIPTS,
    shuffle=st.randoms(use_true_random=False),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
)
def test_order_spacing_escapes_and_unknown_fields_change_no_event(
    value: bytes, shuffle: Random, indent: int | None, *, ascii_only: bool
) -> None:
    def reordered(fields: Mapping[str, Any]) -> dict[str, Any]:
        pairs = [*fields.items(), ("unknown", {"a": [1, "b"]})]
        shuffle.shuffle(pairs)
        return {name: [reordered(line) for line in each] if name == "transactions" else each for name, each in pairs}

    rewritten = json.dumps(reordered(json.loads(value)), indent=indent, ensure_ascii=ascii_only).encode()

    assert parsed(rewritten) == parsed(value)


@given(value=RECEIPTS)
def test_the_sums_of_a_receipt_fit_together(value: bytes) -> None:
    event = parsed(value)

    assert isinstance(event, Event)
    sold = event.payload
    with_sku = [line for line in sold.lines if line.sku is not None]
    assert sold.gross_sales - sold.returns_value == sum(line.total for line in sold.lines)
    assert [sold.is_sale, sold.is_return, sold.is_zero].count(True) == 1
    assert not sold.is_exchange or sold.is_sale
    assert sum(item.net_sales for item in sold.items) == sum(line.total for line in with_sku)
    assert len(sold.items) == len({line.sku for line in with_sku})
    assert sold.line_count == len(sold.lines)
    assert min(sold.units_sold, sold.units_returned) >= 0


@given(values=st.lists(RECEIPTS, min_size=2, max_size=6))
def test_two_events_have_one_identity_only_if_their_ids_and_instants_are_equal(values: list[bytes]) -> None:
    events = [event for event in map(parsed, values) if isinstance(event, Event)]

    ids = {(e.store, e.payload.till, e.payload.transaction_id, e.happened_ms) for e in events}

    assert len({e.identity for e in events}) == len(ids)
