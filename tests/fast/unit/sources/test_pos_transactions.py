"""A receipt adds up as the catalogue says. Expected figures are those of its golden example 6.1, worked out by hand."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from master_dataset.parsing.parse import identity_hash, parse
from master_dataset.parsing.readers import FastReader
from master_dataset.parsing.results import DeadLetter, Event, Reason
from master_dataset.registry.stores import DEFAULT_CURRENCY, DEFAULT_TERMS, Currency, Terms, currency
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS, Item, Line, Payment, Receipt


def written(*lines: dict[str, Any], **fields: object) -> bytes:
    body = {
        "operation_id": 1,
        "vendor_fiscal_module": 123,
        "transaction_id": 42,
        "happened_at": "2026-03-07T10:05:00+01:00",
        "transactions": [{"title": "a", **line} for line in lines],
    }
    return json.dumps(body | fields).encode()


def event(*lines: dict[str, Any], money: Currency = DEFAULT_CURRENCY, **fields: object) -> Event[Receipt]:
    parsed = parse(POS_TRANSACTIONS, written(*lines, **fields), lambda _: Terms(money))
    assert isinstance(parsed, Event)
    return parsed


def refused(*lines: dict[str, Any], **fields: object) -> tuple[Reason, str]:
    parsed = parse(POS_TRANSACTIONS, written(*lines, **fields), lambda _: DEFAULT_TERMS)
    assert isinstance(parsed, DeadLetter)
    return parsed.reason, parsed.field


def figures(receipt: Receipt) -> Sequence[object]:
    kinds = (receipt.is_sale, receipt.is_return, receipt.is_exchange, receipt.is_zero)
    sums = (receipt.gross_sales, receipt.returns_value, receipt.units_sold, receipt.units_returned, receipt.line_count)
    return (*kinds, *sums)


def test_receipt_42_is_a_sale_of_three_pieces() -> None:
    sold = event({"price": 1.09, "amount": 2}, {"price": 2.50, "amount": 1})

    assert figures(sold.payload) == (True, False, False, False, 468, 0, 3, 0, 2)


def test_receipt_43_rounds_half_even_and_counts_weighed_goods_as_one_piece_each() -> None:
    weighed = event({"price": 1.99, "amount": 0.734}, {"price": 0.25, "amount": 0.5})

    assert [line.total for line in weighed.payload.lines] == [146, 12]
    assert figures(weighed.payload) == (True, False, False, False, 158, 0, 2, 0, 2)


def test_receipt_44_gives_money_back_and_sells_nothing() -> None:
    returned = event({"price": 2.50, "amount": -1})

    assert figures(returned.payload) == (False, True, False, False, 0, 250, 0, 1, 1)


def test_receipt_45_is_a_sale_and_an_exchange_but_no_return() -> None:
    exchanged = event({"price": 1.09, "amount": -1}, {"price": 1.05, "amount": 3})

    assert figures(exchanged.payload) == (True, False, True, False, 315, 109, 3, 1, 2)


def test_the_cells_of_the_golden_example_are_the_sums_of_their_receipts() -> None:
    first = [event({"price": 1.09, "amount": 2}, {"price": 2.50, "amount": 1})]
    first += [event({"price": 1.99, "amount": 0.734}, {"price": 0.25, "amount": 0.5})]
    second = [event({"price": 2.50, "amount": -1}), event({"price": 1.09, "amount": -1}, {"price": 1.05, "amount": 3})]

    cells = [[sum(each) for each in zip(*(figures(e.payload) for e in cell), strict=True)] for cell in (first, second)]

    assert cells[0] == [2, 0, 0, 0, 626, 0, 5, 0, 4]
    assert cells[1] == [1, 1, 1, 0, 315, 359, 3, 2, 3]


def test_an_event_has_the_identity_of_its_ids_as_text_and_its_instant_in_ms() -> None:
    as_numbers = event({"price": 1, "amount": 1})
    as_texts = event({"price": 1, "amount": 1}, operation_id="1", vendor_fiscal_module="123", transaction_id="42")
    other = event({"price": 1, "amount": 1}, transaction_id="042")

    assert as_numbers.identity == as_texts.identity == '["1","123","42",1772874300000]'
    assert other.identity != as_numbers.identity


@pytest.mark.parametrize(
    ("topic", "identity", "expected"),
    [
        ("pos_transactions", '["1","123","42",1772874300000]', 4282770372288139745),
        ("people_counts", '["1","123","42",1772874300000]', 5338804838501395691),
    ],
)
def test_the_identity_hash_never_changes_because_tables_hold_it(topic: str, identity: str, expected: int) -> None:
    assert identity_hash(topic, identity) == expected


def test_the_payload_hash_never_changes_because_tables_hold_it() -> None:
    sold = event({"price": 1.09, "amount": 2, "sku": "8580001"})

    assert sold.payload_hash == -7587207442477413823


def test_the_instant_keeps_ms_and_cuts_finer_digits() -> None:
    late = event({"price": 1, "amount": 1}, happened_at="2026-03-07T10:29:59.99999999+01:00")

    assert late.happened_at.isoformat() == "2026-03-07T09:29:59.999000+00:00"
    assert late.day.isoformat() == "2026-03-07"


def test_the_day_is_the_utc_day() -> None:
    after_midnight = event({"price": 1, "amount": 1}, happened_at="2026-03-07T00:30:00+01:00")

    assert after_midnight.day.isoformat() == "2026-03-06"


def test_lines_of_one_sku_are_one_item_and_lines_without_are_none() -> None:
    twice = {"price": 1.00, "amount": 2, "sku": "a"}
    back = {"price": 1.00, "amount": -1, "sku": "b"}

    sold = event(twice, {"price": 5, "amount": 1}, back, {**twice, "amount": -0.5}, {**back, "sku": ""})

    assert sold.payload.items == [Item("a", 150, 1, is_sale=True), Item("b", -100, -1, is_sale=False)]


def test_a_line_keeps_what_the_till_printed() -> None:
    sold = event({"title": "Milk 1 l", "price": 1.09, "amount": 2, "total": 2.00, "sku": "8580001"})

    assert sold.payload.lines == [Line("Milk 1 l", 1_090_000, 2000, 200, "8580001")]


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ({"price": 1.09, "amount": 2, "total": 2.18}, []),
        ({"price": 1.09, "amount": 2, "total": 2.19}, []),
        ({"price": 1.09, "amount": 2, "total": 2.20}, ["total_mismatch"]),
        ({"price": 1.095, "amount": 1, "total": 1.08}, ["total_mismatch"]),
        ({"price": 1.09, "amount": 0}, ["zero_amount"]),
        ({"price": -1.00, "amount": 1}, ["negative_price"]),
        ({"price": -1.00, "amount": 0, "total": 9}, ["negative_price", "total_mismatch", "zero_amount"]),
    ],
)
def test_what_is_odd_is_flagged_and_still_counts(line: dict[str, Any], flags: list[str]) -> None:
    odd = event(line)

    assert odd.payload.flags == flags


def test_a_receipt_without_lines_is_a_zero_receipt_and_flagged() -> None:
    empty = event()

    assert figures(empty.payload) == (False, False, False, True, 0, 0, 0, 0, 0)
    assert empty.payload.flags == ["empty_receipt"]


def test_a_discount_lowers_gross_sales_and_a_zero_amount_counts_its_total() -> None:
    mixed = event({"price": 5, "amount": 1}, {"price": -1, "amount": 1}, {"price": 2, "amount": 0, "total": 0.5})

    assert figures(mixed.payload) == (True, False, False, False, 450, 0, 2, 0, 3)


@pytest.mark.parametrize(
    ("code", "price", "amount", "total"),
    [
        ("EUR", 0.125, 1, 12),
        ("EUR", 0.135, 1, 14),
        ("EUR", 0.125, -1, -12),
        ("EUR", 0.135, -1, -14),
        ("EUR", 0.125001, 1, 13),
        ("JPY", 0.5, 1, 0),
        ("JPY", 1.5, 1, 2),
        ("JPY", 2.5, -1, -2),
        ("KWD", 0.0005, 1, 0),
        ("KWD", 0.0015, 1, 2),
        ("CLF", 0.00005, 1, 0),
    ],
)
def test_a_line_total_is_rounded_half_even_to_the_minor_unit(code: str, price: float, amount: int, total: int) -> None:
    sold = event({"price": price, "amount": amount}, money=currency(code))

    assert sold.payload.lines[0].total == total
    assert sold.payload.currency == code


CARD = {"type": "card", "amount": 1}


def test_a_receipt_without_the_later_fields_says_nothing_of_them() -> None:
    for sold in (
        event({"price": 1, "amount": 1}),
        event({"price": 1, "amount": 1, "discount": None}, payments=None),
        event({"price": 1, "amount": 1}, payments=[]),
    ):
        assert (sold.payload.discount, sold.payload.discount_returned, sold.payload.payments) == (None, None, None)
        assert sold.payload_hash == event({"price": 1, "amount": 1}).payload_hash


def test_the_price_is_before_the_discount_and_the_total_after_it() -> None:
    stated = event({"price": 2, "amount": 2, "discount": 0.5, "total": 3.5}).payload
    computed = event({"price": 2, "amount": 2, "discount": 0.5}).payload

    assert [line.total for line in (*stated.lines, *computed.lines)] == [350, 350]
    assert (computed.gross_sales, computed.discount, computed.discount_returned) == (350, 50, 0)
    assert stated.flags == computed.flags == []
    assert event({"price": 2, "amount": 2, "discount": 0.5, "total": 4}).payload.flags == ["total_mismatch"]


def test_discounts_of_returns_are_kept_apart_and_a_line_that_says_none_has_none() -> None:
    mixed = event(
        {"price": 10, "amount": 1, "discount": 1},
        {"price": 10, "amount": -1, "discount": -2.5},
        {"price": 3, "amount": 1},
        {"price": 3, "amount": 0, "discount": 0},
    ).payload

    assert (mixed.gross_sales, mixed.returns_value) == (1200, 750)
    assert (mixed.discount, mixed.discount_returned) == (100, 250)


def test_no_discount_is_not_the_same_as_a_discount_of_zero() -> None:
    assert event({"price": 1, "amount": 1, "discount": 0}).payload.discount == 0
    assert event({"price": 1, "amount": 1}).payload.discount is None


def test_payments_are_kept_as_sent_in_minor_units() -> None:
    paid = event({"price": 1, "amount": 1}, payments=[{"type": "gift_card", "amount": 0.4}, {**CARD, "amount": -0.1}])

    assert paid.payload.payments == [Payment("gift_card", 40, is_first=True), Payment("card", -10, is_first=False)]


@pytest.mark.parametrize(
    ("line", "reason", "field"),
    [
        ({"amount": 1, "discount": -0.01}, Reason.OUT_OF_RANGE, "/transactions/0/discount"),
        ({"amount": 0, "discount": -0.01}, Reason.OUT_OF_RANGE, "/transactions/0/discount"),
        ({"amount": -1, "discount": 0.01}, Reason.OUT_OF_RANGE, "/transactions/0/discount"),
        ({"amount": 1, "discount": 1e10 + 1}, Reason.OUT_OF_RANGE, "/transactions/0/discount"),
        ({"amount": 1, "discount": 0.001}, Reason.BAD_NUMBER, "/transactions/0/discount"),
        ({"amount": 1, "discount": "1"}, Reason.WRONG_TYPE, "/transactions/0/discount"),
    ],
)
def test_a_discount_that_cannot_be_is_refused_by_its_name(line: dict[str, Any], reason: Reason, field: str) -> None:
    assert refused({"price": 1, "total": 1, **line}) == (reason, field)


@pytest.mark.parametrize(
    ("payments", "reason", "field"),
    [
        ([CARD] * 21, Reason.OUT_OF_RANGE, "/payments"),
        ({}, Reason.WRONG_TYPE, "/payments"),
        ([1], Reason.WRONG_TYPE, "/payments/0"),
        ([CARD, {"type": "card"}], Reason.MISSING_FIELD, "/payments/1/amount"),
        ([{"amount": 1}], Reason.MISSING_FIELD, "/payments/0/type"),
        ([CARD, {**CARD, "amount": -1e10 - 1}], Reason.OUT_OF_RANGE, "/payments/1/amount"),
        ([{**CARD, "amount": 0.001}], Reason.BAD_NUMBER, "/payments/0/amount"),
        *(
            ([{**CARD, "type": word}], Reason.OUT_OF_RANGE, "/payments/0/type")
            for word in ("", "Card", "gift card", "4111111111111111", "_x", "a" * 33, "k\u00e4rtchen", "card\n")
        ),
    ],
)
def test_payments_that_cannot_be_are_refused_by_their_name(payments: object, reason: Reason, field: str) -> None:
    assert refused({"price": 1, "amount": 1}, payments=payments) == (reason, field)


def test_the_most_payments_and_the_longest_type_are_taken() -> None:
    most = event({"price": 1, "amount": 1}, payments=[{**CARD, "type": "a" * 32}] * 20)

    assert len(most.payload.payments or ()) == 20


@pytest.mark.parametrize("payments", [[{**CARD, "amount": 2}], [{**CARD, "type": "cash"}], [CARD, CARD], []])
def test_other_payments_of_one_identity_are_a_conflict(payments: list[dict[str, object]]) -> None:
    line = {"price": 1, "amount": 1}

    assert event(line, payments=payments).payload_hash != event(line, payments=[CARD]).payload_hash


def test_another_discount_of_one_identity_is_a_conflict() -> None:
    hashes = {event({"price": 1, "amount": 1, "total": 1, "discount": off}).payload_hash for off in (None, 0, 0.5)}

    assert len(hashes) == 3


def test_the_quick_reader_reads_the_later_fields() -> None:
    value = written({"price": 1, "amount": 1, "discount": 0.5}, payments=[CARD, CARD])

    assert FastReader(POS_TRANSACTIONS).read(value, lambda _: DEFAULT_TERMS) is not None
