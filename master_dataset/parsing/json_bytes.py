"""Decode the value of a record as one JSON object: everything that can be checked before the fields of a source."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import msgspec

from master_dataset.parsing.results import InvalidRecordError, Reason

MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_DIGITS = 4000  # Python refuses to turn longer texts into an int; nothing near it can be stored either
# Possessive and open-ended, so that it never backtracks: many quotes without an end must not take quadratic time.
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
GRAMMAR = msgspec.json.Decoder(msgspec.defstruct("Anything", []))  # skips every field, so it builds nothing


class _DuplicateKeyError(Exception):
    """Two keys of an object are equal."""


def check_size(value: bytes | None) -> bytes:
    """Return the bytes. InvalidRecordError `empty_value` (also for a tombstone) or `too_large`."""
    if not value:
        raise InvalidRecordError(Reason.EMPTY_VALUE, "has no value")
    if len(value) > MAX_BYTES:
        raise InvalidRecordError(Reason.TOO_LARGE, f"is larger than {MAX_BYTES:,} bytes")
    return value


def json_object(value: bytes) -> Mapping[str, Any]:
    """Decode a JSON object exactly: numbers as int or finite Decimal, no duplicate key on any level.

    Raises:
        InvalidRecordError: The bytes are no such object.
    """
    if b"\0" in value:
        raise InvalidRecordError(Reason.NOT_UTF8, "holds zero bytes, as UTF-16 and UTF-32 do; send UTF-8")
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise InvalidRecordError(Reason.NOT_UTF8, "is not UTF-8") from None
    if depth(value) > MAX_DEPTH:
        raise InvalidRecordError(Reason.TOO_DEEP, f"is nested deeper than {MAX_DEPTH} levels")
    try:
        GRAMMAR.decode(value)  # stricter than the json module: it knows lone surrogates
        decoded = json.loads(
            text, object_pairs_hook=_once, parse_float=_decimal, parse_int=_whole, parse_constant=_no_constant
        )
    except _DuplicateKeyError:
        raise InvalidRecordError(Reason.DUPLICATE_JSON_KEY, "names a key twice in one object") from None
    except ValueError:  # msgspec's and json's errors both are
        raise InvalidRecordError(Reason.NOT_JSON, "is not one JSON object") from None
    if not isinstance(decoded, dict):
        raise InvalidRecordError(Reason.NOT_JSON, "is JSON, but not an object")
    return decoded


def depth(value: bytes) -> int:
    """Return the nesting depth of arrays and objects, without recursion; 0 if it cannot exceed MAX_DEPTH."""
    if value.count(b"[") + value.count(b"{") <= MAX_DEPTH:
        return 0  # too few brackets to be too deep
    deepest = level = 0
    for byte in STRINGS.sub(b"", value).translate(None, NOT_BRACKETS):
        level += 1 if byte in b"[{" else -1
        deepest = max(deepest, level)
    return deepest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _DuplicateKeyError
    return fields


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond what even Decimal holds
        return Decimal("1e999999")  # as much too large; 0e99999999999999999999 is not a usable amount either


def _whole(text: str) -> int:
    return int(text[:MAX_DIGITS])  # a longer one is as much too large when it is cut


def _no_constant(_: str) -> NoReturn:
    raise ValueError
