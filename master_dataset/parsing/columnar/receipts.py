"""Adds receipts up column by column, as `master_dataset.sources.pos_transactions.receipt` does one by one.

It adds up in 64 bits: a receipt with products that might need more is not sure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.arrow import arrow_fields
from master_dataset.parsing.columnar.columns import Ints, LineColumns, Mask, offsets_of, sums
from master_dataset.parsing.columnar.records import Derived, TypedRecords, flag_lists, lists
from master_dataset.sources.pos_transactions import MAX_AMOUNT, MAX_LINE_TOTAL, MOST_TITLE, Item, Line, Payment

SAFE = 2.0**61
"""Products below it, and the difference of two, need no more than 64 bits."""
_FIELDS: Mapping[type, list[pa.Field]] = {kind: arrow_fields(kind) for kind in (Line, Item, Payment)}


def receipts(records: TypedRecords, sure: Mask) -> Derived:
    """The receipts."""
    lines = records.lines("transactions")
    offsets, parents = lines.offsets, lines.parents
    scale = 10 ** (9 - records.of_terms(lambda terms: terms.currency.digits))[parents]
    price, amount = (lines.columns[name].to_numpy() for name in ("price", "amount"))
    (total, is_sent), (discount, has_discount) = (_known(lines.columns[name]) for name in ("total", "discount"))
    sure_lines = (np.abs(price.astype(float)) * np.abs(amount) < SAFE) & (
        np.abs(total.astype(float) + discount) * scale < SAFE
    )
    product = price * amount
    is_mismatch = is_sent & (np.abs((total + discount) * scale - product) > scale)
    total = np.where(is_sent, total, _half_even(product, scale) - discount)
    sure_lines &= (np.abs(amount) <= MAX_AMOUNT) & (np.abs(total) <= MAX_LINE_TOTAL)
    sure_lines &= (np.abs(discount) <= MAX_LINE_TOTAL) & ((discount == 0) | ((discount < 0) == (amount < 0)))
    payments = records.lines("payments")
    paid = payments.columns["amount"].to_numpy()
    sure = sure.copy()
    sure[parents[~sure_lines]] = False
    sure[payments.parents[np.abs(paid) > MAX_LINE_TOTAL]] = False

    def columns() -> Mapping[str, pa.Array]:
        is_sold, is_returned = amount > 0, amount < 0
        units = np.where(amount % 1000 == 0, amount // 1000, np.sign(amount))
        sales, returns = sums(is_sold, offsets), sums(is_returned, offsets)
        is_sale = sales > 0
        has_any_discount = sums(has_discount, offsets) > 0
        titles = pc.utf8_slice_codeunits(lines.columns["title"], 0, MOST_TITLE)
        line_columns = [titles, price, amount, total, lines.columns["sku"]]
        return {
            "till": records.columns["vendor_fiscal_module"],
            "transaction_id": records.columns["transaction_id"],
            "currency": pa.array(records.of_terms(lambda terms: terms.currency.code), pa.string()),
            "is_sale": pa.array(is_sale),
            "is_return": pa.array((returns > 0) & ~is_sale),
            "is_exchange": pa.array((returns > 0) & is_sale),
            "is_zero": pa.array((returns == 0) & ~is_sale),
            "gross_sales": pa.array(sums(np.where(is_returned, 0, total), offsets)),
            "returns_value": pa.array(sums(np.where(is_returned, -total, 0), offsets)),
            "units_sold": pa.array(sums(np.where(is_sold, units, 0), offsets)),
            "units_returned": pa.array(sums(np.where(is_returned, -units, 0), offsets)),
            "line_count": pa.array(lines.lengths),
            "items": _items(records.number, parents, lines.columns["sku"], (total, units, is_sold.astype(np.int64))),
            "lines": lists(offsets, _structs(Line, line_columns)),
            "flags": flag_lists(
                {
                    "empty_receipt": lines.lengths == 0,
                    "negative_price": sums(price < 0, offsets) > 0,
                    "total_mismatch": sums(is_mismatch, offsets) > 0,
                    "zero_amount": sums(amount == 0, offsets) > 0,
                }
            ),
            "discount": pa.array(sums(np.where(is_returned, 0, discount), offsets), mask=~has_any_discount),
            "discount_returned": pa.array(sums(np.where(is_returned, -discount, 0), offsets), mask=~has_any_discount),
            "payments": _payments(payments, paid),
        }

    return Derived(columns, sure)


def _known(numbers: pa.Array) -> tuple[Ints, Mask]:
    """Return the numbers with 0 for null, and which are not null."""
    return numbers.fill_null(0).to_numpy(), numbers.is_valid().to_numpy(zero_copy_only=False)


def _half_even(product: Ints, scale: Ints) -> Ints:
    quotient, rest = np.divmod(product, scale)
    rounded: Ints = quotient + ((rest * 2 > scale) | ((rest * 2 == scale) & (quotient % 2 == 1)))
    return rounded


def _items(number: int, parents: Ints, skus: pa.Array, measures: Sequence[npt.NDArray[Any]]) -> pa.ListArray:
    """The sums of each SKU of a receipt, in order of first appearance."""
    has_sku = skus.is_valid().to_numpy(zero_copy_only=False)
    receipt, encoded = parents[has_sku], skus.filter(pa.array(has_sku)).dictionary_encode()
    group = receipt * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    first = order[begins]  # lines of their SKU in a receipt, as the sort is stable
    by_appearance = np.argsort(first)
    net_sales, net_units, sales = (np.add.reduceat(each[has_sku][order], begins)[by_appearance] for each in measures)
    items = [
        encoded.dictionary.take(encoded.indices.take(pa.array(first[by_appearance]))),
        net_sales,
        net_units,
        sales > 0,
    ]
    return lists(offsets_of(np.bincount(receipt[first], minlength=number)), _structs(Item, items))


def _payments(payments: LineColumns, amount: Ints) -> pa.ListArray:
    """The payments of receipts, null where there are none."""
    is_first = np.isin(np.arange(len(amount)), payments.offsets[:-1])
    columns = [payments.columns["type"], amount, is_first]
    return lists(payments.offsets, _structs(Payment, columns), payments.lengths == 0)


def _structs(kind: type[Any], columns: Sequence[Any]) -> pa.StructArray:
    fields = _FIELDS[kind]
    arrays = [
        pa.array(column, field.type) if isinstance(column, np.ndarray) else column
        for column, field in zip(columns, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields)
