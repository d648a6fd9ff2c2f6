"""A receipt as a till prints it. A return is a line with a negative amount, so it subtracts by itself."""

from collections.abc import Iterable

import msgspec

from master_dataset.fields import Id, Instant, Lines, Minor, Text, Word, millionths, thousandths
from master_dataset.parsing.results import InvalidRecordError, Reason
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

MAX_AMOUNT = 1_000_000 * 1000  # thousandths
MAX_LINE_TOTAL = 10**12  # minor units
MAX_PAYMENTS = 20
MOST_TITLE = 200
"""Characters of a title that are kept beside the bytes of a receipt: as many as a product master takes."""
RawLine = tuple[str, int, int, int | None, str | None, int | None]
"""Title, price in millionths, thousandths, total as sent, sku, discount in minor units."""


class Line(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a receipt."""

    title: str  # at most `MOST_TITLE` characters
    price_micro: int  # unit price, 10^-6 of the currency
    amount: int  # thousandths; negative is a return
    total: int  # minor units
    sku: str | None


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one receipt says of one sku, over all its lines."""

    sku: str
    net_sales: int  # minor units
    net_units: int
    is_sale: bool  # a line of it has an amount above zero

    def plus(self, other: "Item") -> "Item":
        """Add another line of the same sku."""
        net_sales, net_units = self.net_sales + other.net_sales, self.net_units + other.net_units
        return Item(self.sku, net_sales, net_units, self.is_sale or other.is_sale)


class Payment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One payment of a receipt."""

    type: str
    amount: int  # minor units, negative if it was paid out
    is_first: bool  # of its receipt, so that counting these counts receipts


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """What a receipt adds up to. Each is either sale, return or zero; an exchange is a sale that takes goods back."""

    till: str
    transaction_id: str
    currency: str
    is_sale: bool
    is_return: bool
    is_exchange: bool
    is_zero: bool
    gross_sales: int  # minor units, of lines with an amount of zero or more
    returns_value: int  # minor units, what went back: gross_sales - returns_value is the sum of all line totals
    units_sold: int
    units_returned: int
    line_count: int
    items: list[Item]  # one per sku, in order of first appearance
    lines: list[Line]
    flags: list[str]  # sorted: empty_receipt, negative_price, total_mismatch, zero_amount
    discount: int | None  # minor units, taken off lines with an amount of zero or more; None if no line says one
    discount_returned: int | None  # minor units, by which less went back; None as above
    payments: list[Payment] | None  # as sent; None if there are none


def receipt(record: Record, terms: Terms) -> Receipt:
    """Add a receipt up. InvalidRecordError for a line beyond what a shop can sell."""
    currency = terms.currency
    scale = 10 ** (9 - currency.digits)  # price x amount counts billionths
    raw_lines: list[RawLine] = record["transactions"]
    lines = [priced(number, raw, scale) for number, raw in enumerate(raw_lines)]
    sales = returns = 0
    net = returns_value = units_sold = units_returned = 0
    discount, discount_returned = discounts(raw_lines)
    for line in lines:
        net += line.total
        if line.amount > 0:
            sales += 1
            units_sold += units(line.amount)
        elif line.amount < 0:
            returns += 1
            units_returned -= units(line.amount)
            returns_value -= line.total
    return Receipt(
        till=record["vendor_fiscal_module"],
        transaction_id=record["transaction_id"],
        currency=currency.code,
        is_sale=sales > 0,
        is_return=returns > 0 and not sales,
        is_exchange=sales > 0 and returns > 0,
        is_zero=not sales and not returns,
        gross_sales=net + returns_value,
        returns_value=returns_value,
        units_sold=units_sold,
        units_returned=units_returned,
        line_count=len(lines),
        items=itemised(lines),
        lines=lines,
        flags=flagged(raw_lines, scale),
        discount=discount,
        discount_returned=discount_returned,
        payments=paid(record["payments"]),
    )


def priced(number: int, raw: RawLine, scale: int) -> Line:
    """Return the line its total: as sent, else price x amount, half-even to the minor unit, less the discount."""
    title, price_micro, amount, total, sku, discount = raw
    if total is None:
        total, rest = divmod(price_micro * amount, scale)
        if rest * 2 > scale or (rest * 2 == scale and total % 2):
            total += 1
        if discount is not None:
            total -= discount
    if discount is not None:
        check_discount(number, amount, discount)
    if not -MAX_AMOUNT <= amount <= MAX_AMOUNT:
        raise InvalidRecordError(Reason.OUT_OF_RANGE, "is beyond a million", f"/transactions/{number}/amount")
    if not -MAX_LINE_TOTAL <= total <= MAX_LINE_TOTAL:
        raise InvalidRecordError(Reason.OUT_OF_RANGE, "has a total beyond 10^12 minor units", f"/transactions/{number}")
    return Line(title[:MOST_TITLE], price_micro, amount, total, sku)


def check_discount(number: int, amount: int, discount: int) -> None:
    """Raise InvalidRecordError for a discount that is no number for such a line."""
    field = f"/transactions/{number}/discount"
    if not -MAX_LINE_TOTAL <= discount <= MAX_LINE_TOTAL:
        raise InvalidRecordError(Reason.OUT_OF_RANGE, "is beyond 10^12 minor units", field)
    if discount and (discount < 0) != (amount < 0):
        raise InvalidRecordError(Reason.OUT_OF_RANGE, "must not have another sign than the amount", field)


def discounts(raw_lines: list[RawLine]) -> tuple[int | None, int | None]:
    """Add up what lines that sell say was taken off, and what lines that return say. None, None if no line says any."""
    said = [(raw[2], raw[5]) for raw in raw_lines if raw[5] is not None]
    if not said:
        return None, None
    sold = sum(discount for amount, discount in said if amount >= 0)
    return sold, sum(-discount for amount, discount in said if amount < 0)


def paid(raw_payments: list[tuple[str, int]] | None) -> list[Payment] | None:
    """Return the payments of a receipt; an empty list says as little as none. InvalidRecordError for a huge amount."""
    if not raw_payments:
        return None
    for number, (_, amount) in enumerate(raw_payments):
        if not -MAX_LINE_TOTAL <= amount <= MAX_LINE_TOTAL:
            raise InvalidRecordError(Reason.OUT_OF_RANGE, "is beyond 10^12 minor units", f"/payments/{number}/amount")
    return [Payment(type_, amount, number == 0) for number, (type_, amount) in enumerate(raw_payments)]


def units(amount: int) -> int:
    """Count the pieces of a line, negative for a return. Whatever is weighed is one piece."""
    if amount % 1000:
        return 1 if amount > 0 else -1
    return amount // 1000


def itemised(lines: Iterable[Line]) -> list[Item]:
    """Sum the lines of each sku, so that a receipt counts once for an item it names twice."""
    items: dict[str, Item] = {}
    for line in lines:
        if line.sku is not None:
            item = Item(line.sku, line.total, units(line.amount), line.amount > 0)
            before = items.get(line.sku)
            items[line.sku] = item if before is None else before.plus(item)
    return list(items.values())


def flagged(raw_lines: list[RawLine], scale: int) -> list[str]:
    """Name what is odd about a receipt. It still counts: a flag explains an unexpected number."""
    flags: set[str] = set() if raw_lines else {"empty_receipt"}
    for _, price_micro, amount, total, _, discount in raw_lines:
        if amount == 0:
            flags.add("zero_amount")
        if price_micro < 0:
            flags.add("negative_price")
        if total is not None and not -scale <= (total + (discount or 0)) * scale - price_micro * amount <= scale:
            flags.add("total_mismatch")
    return sorted(flags) if flags else []


LINES = Lines(
    {
        "title": Text(about=f"What was sold. Beyond {MOST_TITLE} characters, only the receipt as it was sent has it."),
        "price": millionths("Unit price, before a discount."),
        "amount": thousandths("Quantity, whole or weighed, negative for a return; at most a million."),
        "total": Minor(
            optional=True, about="Total of the line, after its discount; absent: price times amount, less the discount."
        ),
        "sku": Text(optional=True, max_bytes=256, about="Number of the item."),
        "discount": Minor(
            optional=True,
            about="What was taken off the line: price times amount is the total and the discount. Not below zero; of a "
            "return not above. A till that knows discounts sends 0 where there is none; absent: not known.",
        ),
    },
    about="The lines of the receipt.",
)
PAYMENTS = Lines(
    {
        "type": Word(about="How it was paid, such as `cash`, `card` or `voucher`; the words are yours."),
        "amount": Minor(about="How much, without the change given back; negative if it was paid out."),
    },
    optional=True,
    most=MAX_PAYMENTS,
    about="How the receipt was paid; absent or empty: not known. Need not add up to its total.",
)
POS_TRANSACTIONS = Source(
    topic="pos_transactions",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "vendor_fiscal_module", "transaction_id", "happened_at"),  # several a second
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "vendor_fiscal_module": Id(about="The till."),
        "transaction_id": Id(about="The receipt, as its till numbers it."),
        "happened_at": Instant(about="When it was printed."),
        "transactions": LINES,
        "payments": PAYMENTS,
    },
    payload=Receipt,
    derive=receipt,
    content=("lines",),
    content_later=("discount", "discount_returned", "payments"),
    example={
        "happened_at": "2017-09-19T22:48:03+00:00",
        "operation_id": 1,
        "transaction_id": 42,
        "vendor_fiscal_module": 123,
        "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 2, "total": 2.18, "sku": "8580001"}],
    },
    flags={
        "empty_receipt": "It has no lines.",
        "negative_price": "A line has a price below zero: a discount.",
        "total_mismatch": "The total of a line is not its price times its amount.",
        "zero_amount": "A line has an amount of zero.",
    },
)
