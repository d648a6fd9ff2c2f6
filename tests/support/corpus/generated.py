"""Cases too large or too many to write: depth, size, and every field of a source removed, retyped, joined by others."""

import json
from collections.abc import Iterator
from functools import cache

from master_dataset.fields import Field, Id, Instant, Lines, Text, Word
from master_dataset.sources.pos_transactions import LINES, PAYMENTS, POS_TRANSACTIONS
from tests.support.corpus.case import LINE, Case, receipt, written

KINDS = {"null": "null", "true": "true", "number": "7", "decimal": "7.5", "text": '"x"', "list": "[]", "object": "{}"}


@cache
def generated() -> tuple[Case, ...]:
    """All of them, built once for every test that is given them."""
    return (*depths(), *sizes(), *removed(), *retyped(), *joined())


def depths() -> Iterator[Case]:
    """Nesting at the limit, beyond it, and beyond what a recursive reader survives. The receipt is one level."""
    for levels, expected in (
        (31, "event"),
        (32, "too_deep"),
        (1000, "too_deep"),
        (2000, "too_deep"),
        (400_000, "too_deep"),
    ):
        yield Case(f"{levels} lists in a receipt", receipt({"x": "[" * levels + "]" * levels}), expected)
        yield Case(f"{levels} open lists", b"[" * levels, "not_json" if levels <= 32 else "too_deep")
    for levels, expected in ((31, "event"), (32, "too_deep"), (100_000, "too_deep")):
        yield Case(f"{levels} objects in a receipt", receipt({"x": '{"a":' * levels + "1" + "}" * levels}), expected)
    yield Case("a million open lists", b"[" * 1_000_000, "too_deep")
    yield Case("a million closing brackets", b"]" * 1_000_000, "not_json")
    yield Case("brackets that never nest", receipt({"x": "[" + "[]," * 100_000 + "[]]"}), "event")
    yield Case("brackets inside text", receipt({"title": '"' + "[" * 1000 + '"'}), "event")
    yield Case("quotes without an end", b'{"a": "' + b'\\"' * 400_000, "not_json")


def sizes() -> Iterator[Case]:
    """Values of exactly 1,000,000 bytes and of one more, and larger ones."""
    smallest = len(receipt({"x": '""'}))
    yield Case("a million bytes", receipt({"x": '"' + "x" * (1_000_000 - smallest) + '"'}), "event")
    yield Case("a million and one", receipt({"x": '"' + "x" * (1_000_001 - smallest) + '"'}), "too_large")
    yield Case("ten million bytes", receipt({"x": '"' + "x" * 10_000_000 + '"'}), "too_large")
    yield Case("70,000 keys", receipt({"k0": _keys(70_000)}), "event")
    yield Case("a million keys", receipt({"k0": _keys(1_000_000)}), "too_large")
    yield Case("10,000 lines", receipt({"transactions": f"[{','.join([written(LINE)] * 10_000)}]"}), "event")
    yield Case(
        "a number of 900,000 digits", receipt({"price": "0." + "1" * 900_000}), "bad_number", "/transactions/0/price"
    )
    yield Case(
        "an integer of 900,000 digits", receipt({"amount": "1" * 900_000}), "bad_number", "/transactions/0/amount"
    )
    yield Case("an unknown number of 900,000 digits", receipt({"x": "1" * 900_000}), "event")


def _keys(number: int) -> str:
    """The value of the field `k0`, followed by other fields, so that there are `number`."""
    return "1" + "".join(f', "k{each}": 1' for each in range(1, number))


def removed() -> Iterator[Case]:
    """Each field left out."""
    for name, pointer, field in _fields():
        expected = "event" if field.optional else "missing_field"
        yield Case(f"without {name}", receipt(drop=(name,)), expected, "" if field.optional else pointer)


def retyped() -> Iterator[Case]:
    """Each field as every kind of JSON value."""
    for name, pointer, field in _fields():
        for kind, text in KINDS.items():
            expected = _expected(field, kind)
            case = f"{name} as {kind}"
            yield Case(case, receipt({name: text}), expected, "" if expected == "event" else pointer)
    for name, field in PAYMENTS.fields.items():
        for kind, text in KINDS.items():
            payment = written({"type": '"card"', "amount": "2.18"} | {name: text})
            expected = _expected(field, kind)
            pointer = "" if expected == "event" else f"/payments/0/{name}"
            yield Case(f"{name} of a payment as {kind}", receipt({"payments": f"[{payment}]"}), expected, pointer)


def joined() -> Iterator[Case]:
    """Fields that no source names, in every place and of every kind: ignored, and kept in the raw bytes."""
    for kind, text in KINDS.items():
        yield Case(f"an unknown {kind}", receipt({"unknown": text}), "event")
        in_line = f"[{written(LINE | {'unknown': text})}]"
        yield Case(f"an unknown {kind} in a line", receipt({"transactions": in_line}), "event")
    for name in ("", "$where", "__proto__", "Operation_id", "operation_id ", "\u00e9", "'; --", "a.b", "/"):
        yield Case(f"a field named {json.dumps(name)}", receipt({name: "1"}), "event")


def _fields() -> Iterator[tuple[str, str, Field | Lines]]:
    for name, field in POS_TRANSACTIONS.fields.items():
        yield name, f"/{name}", field
        if field is LINES:
            for inner, each in LINES.fields.items():
                yield inner, f"/{name}/0/{inner}", each


def _expected(field: Field | Lines, kind: str) -> str:
    if kind == "null" and field.optional:
        return "event"
    if isinstance(field, Instant):
        return "bad_time"
    fitting = {Id: ("number", "text"), Text: ("text",), Word: ("text",), Lines: ("list",)}.get(
        type(field), ("number", "decimal")
    )
    return "event" if kind in fitting else "wrong_type"
