"""Two readers from bytes to a typed record: a careful one that defines the result, and a fast one for valid records.

The careful reader accepts any bytes and reports the first reason why they are no record, with a JSON pointer. The fast
one returns the same record or None, and then the careful reader decides.

msgspec decodes into structs made of the source's fields. It accepts duplicate keys and skips unknown fields, so quotes
are counted: valid JSON has two for each key and two for each string. If there are exactly as many as the decoded fields
account for, there is no other key or string, so nothing is duplicate, unknown or nested deeper than the source itself.
Any other count proves nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec

from master_dataset.fields import Field, Lines, Text, absent
from master_dataset.parsing.json_bytes import json_object
from master_dataset.parsing.results import InvalidRecordError, Reason
from master_dataset.registry.stores import DEFAULT_CURRENCY, Currency, Terms
from master_dataset.source import Record, Source


def read(source: Source[Any], value: bytes, terms_of: Callable[[str], Terms]) -> tuple[Record, Terms]:
    """Return the typed record and the terms of its store. InvalidRecordError for the first field that is wrong."""
    decoded = json_object(value)
    store = _field(source.store, source.fields[source.store], decoded, DEFAULT_CURRENCY)
    terms = terms_of(store)
    return {name: _field(name, field, decoded, terms.currency) for name, field in source.fields.items()}, terms


def _field(name: str, field: Field | Lines, decoded: Mapping[str, Any], currency: Currency) -> Any:  # noqa: ANN401 - typed by its field
    if decoded.get(name) is None:
        if field.optional:
            return absent(field)
        if name not in decoded:
            raise InvalidRecordError(Reason.MISSING_FIELD, "is missing", f"/{name}")
    try:
        if isinstance(field, Lines):
            return _lines(field, decoded[name], currency)
        return field.read(decoded[name], currency)
    except InvalidRecordError as error:
        raise error.under(f"/{name}") from None


def _lines(lines: Lines, decoded: object, currency: Currency) -> list[tuple[Any, ...]]:
    if not isinstance(decoded, list):
        raise InvalidRecordError(Reason.WRONG_TYPE, "must be a list")
    lines.check_length(len(decoded))
    return [_line(lines, number, line, currency) for number, line in enumerate(decoded)]


def _line(lines: Lines, number: int, decoded: object, currency: Currency) -> tuple[Any, ...]:
    if not isinstance(decoded, dict):
        raise InvalidRecordError(Reason.WRONG_TYPE, "must be an object", f"/{number}")
    try:
        return tuple(_field(name, field, decoded, currency) for name, field in lines.fields.items())
    except InvalidRecordError as error:
        raise error.under(f"/{number}") from None


UNSET = msgspec.UNSET
UnsetType = type(UNSET)
Read = Callable[[Any, Currency], Any]
UNSURE = (msgspec.MsgspecError, InvalidRecordError, ValueError, ArithmeticError, RecursionError)
as_tuple: Callable[[Any], tuple[Any, ...]] = msgspec.structs.astuple


class FastReader:
    """The fast reader of one source, made once per process."""

    def __init__(self, source: Source[Any]) -> None:
        """Compile the fields to a struct and to one function each."""
        self.names = tuple(source.fields)
        self.reads = tuple(_read(field) for field in source.fields.values())
        self.lists = tuple(at for at, field in enumerate(source.fields.values()) if isinstance(field, Lines))
        self.store = self.names.index(source.store)
        self.decoder = msgspec.json.Decoder(_struct(source.topic, source.fields), float_hook=Decimal)

    def read(self, value: bytes, terms_of: Callable[[str], Terms]) -> tuple[Record, Terms] | None:
        """Return the typed record and the terms of its store. None: use the careful reader."""
        try:
            raw = [*as_tuple(self.decoder.decode(value))]
            store: str = self.reads[self.store](raw[self.store], DEFAULT_CURRENCY)
        except UNSURE:
            return None
        kinds = [*map(type, raw)]
        for at in self.lists:
            if raw[at]:  # neither absent nor empty
                raw[at] = [*map(as_tuple, raw[at])]
                kinds.extend(map(type, chain.from_iterable(raw[at])))
        keys_and_strings = len(kinds) - kinds.count(UnsetType) + kinds.count(str)
        if quotes_in(value) != 2 * keys_and_strings:
            return None
        terms = terms_of(store)
        currency = terms.currency
        try:
            typed = [read(cell, currency) for read, cell in zip(self.reads, raw)]  # noqa: B905 - both are the fields
        except UNSURE:
            return None
        return dict(zip(self.names, typed)), terms  # noqa: B905


def quotes_in(value: bytes) -> int:
    """Count the quotes that begin or end a string in valid JSON: all but escaped ones."""
    quotes = value.count(b'"')
    if b"\\" in value:
        quotes -= value.replace(b"\\\\", b"").count(b'\\"')
    return quotes


def _struct(name: str, fields: Mapping[str, Field | Lines]) -> type[msgspec.Struct]:
    members: list[Any] = []
    for key, field in fields.items():
        hint: Any = _list_hint(key, field) if isinstance(field, Lines) else field.hint
        members.append((key, hint, UNSET) if field.optional else (key, hint))
    return msgspec.defstruct(name, members, kw_only=True)


def _list_hint(name: str, lines: Lines) -> Any:  # noqa: ANN401 - as `Field.hint`
    hint: Any = list[_struct(name, lines.fields)]  # type: ignore[misc]
    return hint | None if lines.optional else hint


def _read(field: Field | Lines) -> Read:
    read: Read = _read_lines(field) if isinstance(field, Lines) else field.read
    return _absent_or(read, absent(field)) if field.optional else read


def _absent_or(read: Read, otherwise: object) -> Read:
    return lambda value, currency: otherwise if value is UNSET or value is None else read(value, currency)


def _read_lines(lines: Lines) -> Read:
    as_decoded = Text()
    reads = tuple(None if each == as_decoded else _read(each) for each in lines.fields.values())

    def read_rows(rows: Sequence[tuple[Any, ...]], currency: Currency) -> list[tuple[Any, ...]]:
        lines.check_length(len(rows))
        return [tuple([read(cell, currency) if read else cell for read, cell in zip(reads, row)]) for row in rows]  # noqa: B905

    return read_rows
