"""The reference reader: any bytes to a typed record, or the first reason why not, with a pointer to it. Slow and plain.

`fast.py` may only ever give what this gives; whatever it is unsure of comes here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from master_dataset.fields import Field, Lines, absent
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.parsing.json_bytes import json_object
from master_dataset.registry.currency import DEFAULT_CURRENCY, Currency
from master_dataset.registry.terms import Terms
from master_dataset.source import Record, Source


def read(source: Source[Any], value: bytes, terms_of: Callable[[str], Terms]) -> tuple[Record, Terms]:
    """Give the typed record and the terms of its store. Raises Refused."""
    decoded = json_object(value)
    store = _field(source.store, source.fields[source.store], decoded, DEFAULT_CURRENCY)
    terms = terms_of(store)
    return {name: _field(name, field, decoded, terms.currency) for name, field in source.fields.items()}, terms


def _field(name: str, field: Field | Lines, decoded: Mapping[str, Any], currency: Currency) -> Any:  # noqa: ANN401 - typed by its field
    if decoded.get(name) is None:
        if field.optional:
            return absent(field)
        if name not in decoded:
            raise Refused(Reason.MISSING_FIELD, "is missing", f"/{name}")
    try:
        if isinstance(field, Lines):
            return _lines(field, decoded[name], currency)
        return field.read(decoded[name], currency)
    except Refused as refused:
        raise refused.under(f"/{name}") from None


def _lines(lines: Lines, decoded: object, currency: Currency) -> list[tuple[Any, ...]]:
    if not isinstance(decoded, list):
        raise Refused(Reason.WRONG_TYPE, "must be a list")
    return [_line(lines, number, line, currency) for number, line in enumerate(decoded)]


def _line(lines: Lines, number: int, decoded: object, currency: Currency) -> tuple[Any, ...]:
    if not isinstance(decoded, dict):
        raise Refused(Reason.WRONG_TYPE, "must be an object", f"/{number}")
    try:
        return tuple(_field(name, field, decoded, currency) for name, field in lines.fields.items())
    except Refused as refused:
        raise refused.under(f"/{number}") from None
