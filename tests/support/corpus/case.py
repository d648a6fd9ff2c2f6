"""One case: bytes, and what they must become."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from master_dataset.registry.stores import DEFAULT_CURRENCY, Currency, currency

RECEIPT = {
    "operation_id": "1",
    "vendor_fiscal_module": "123",
    "transaction_id": "42",
    "happened_at": '"2026-03-07T09:05:00Z"',
}
LINE = {"title": '"Milk 1 l"', "price": "1.09", "amount": "2", "total": "2.18", "sku": '"8580001"'}
OF_LINES = ("discount",)
"""Fields of a line that it only has if they are put there."""
OVER_HTTP = {"wire", "queries", "injection"}
"""Kinds that are about requests; what they look like is said beside them."""
Put = Mapping[str, str]  # field to the JSON text of its value


@dataclass(frozen=True)
class Case:
    """`expected` is `event` or a reason code; `field` is where a dead letter points, empty for the whole record."""

    name: str
    value: bytes
    expected: str
    field: str = ""
    store_currency: Currency = DEFAULT_CURRENCY
    received_us: int | None = None


def receipt(put: Put | None = None, drop: tuple[str, ...] = ()) -> bytes:
    """Write a receipt of one line as text, so that a case can say every byte of a value. `drop` leaves fields out."""
    put = put or {}
    line = {name: put.get(name, text) for name, text in LINE.items() if name not in drop}
    line |= {name: put[name] for name in OF_LINES if name in put}
    fields = {name: put.get(name, text) for name, text in RECEIPT.items()}
    fields["transactions"] = put.get("transactions", f"[{written(line)}]")
    extra = {
        name: text for name, text in put.items() if name not in LINE and name not in OF_LINES and name not in fields
    }
    return written({name: text for name, text in (fields | extra).items() if name not in drop}).encode()


def written(fields: Put) -> str:
    """Write an object of fields that are JSON text already."""
    names = (f'"{name}"' if name.isidentifier() and name.isascii() else json.dumps(name) for name in fields)
    return "{" + ", ".join(f"{name}: {text}" for name, text in zip(names, fields.values(), strict=True)) + "}"


def by_hand() -> list[Case]:
    """Read every `<kind>/cases.json` that is about records."""
    files = sorted(file for file in Path(__file__).parent.glob("*/cases.json") if file.parent.name not in OVER_HTTP)
    return [_case(file.parent.name, entry) for file in files for entry in json.loads(file.read_text(encoding="utf-8"))]


def _case(kind: str, entry: Mapping[str, Any]) -> Case:
    return Case(
        name=f"{kind}: {entry['name']}",
        value=_value(entry),
        expected=entry["expected"],
        field=entry.get("field", ""),
        store_currency=currency(entry.get("currency", "EUR")),
        received_us=_micros(entry["received"]) if "received" in entry else None,
    )


def _value(entry: Mapping[str, Any]) -> bytes:
    if "text" in entry:
        return str(entry["text"]).encode()
    if "hex" in entry:
        return bytes.fromhex(entry["hex"])
    put = {name: value if isinstance(value, str) else _repeated(value) for name, value in entry.get("put", {}).items()}
    return receipt(put, tuple(entry.get("drop", ())))


def _repeated(value: Mapping[str, Any]) -> str:
    text, times = value["repeat"]
    return json.dumps(text * times)


def _micros(text: str) -> int:
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
