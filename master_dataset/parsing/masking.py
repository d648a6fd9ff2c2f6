"""Mask what a source must never store, before anything is written: the one exception to storing the bytes as received.

In a dead letter it is masked everywhere; in an event only in unknown fields, so that the event does not change.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import pyarrow as pa

from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Event, Reason
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.source import Source

_ESCAPE = re.compile(rb"\\(?:u00(2[0DEde]|3[0-9Aa]|[46][1-6])|.)", re.DOTALL)
"""An escape of JSON; the group: of a hex digit or of what may separate them."""
_CUT_OFF = re.compile(rb'(?<=")[0-9A-Fa-f:.\- ]{2,}\Z')
"""What may be the start of an address, in a record that ends inside a string."""
_MASK = b"*"
fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def mask_batch(source: Source[Any], batch: pa.RecordBatch, parsed: Sequence[object]) -> pa.RecordBatch:
    """Mask the keys and values of a batch. `parsed`: the result of parsing each record."""
    for name, keep in (("key", _kept_key), ("value", _kept)):
        if name not in batch.schema.names:
            continue
        there = batch.column(name).to_pylist()
        kept = [keep(source, each, became) for each, became in zip(there, parsed, strict=True)]
        if kept != there:
            batch = batch.set_column(batch.schema.get_field_index(name), name, pa.array(kept, pa.binary()))
    return batch


def mask_value(source: Source[Any], line: bytes) -> bytes:
    """Return a record as it may be sent to a topic."""
    return line if source.masked is None else _kept(source, line, _parsed(source, line)) or b""


def _kept(source: Source[Any], value: bytes | None, parsed: object) -> bytes | None:
    if not value or parsed is None or (isinstance(parsed, Event) and _has_fields_only(source, value)):
        return value
    secret = _secret(source)
    plain = _plain(value)
    if isinstance(parsed, DeadLetter):
        kept = _CUT_OFF.sub(_asterisks, secret.sub(_asterisks, plain))
        # An address in a spelling that the pattern does not match: nothing of it is stored.
        nothing_found = b"" if parsed.reason is Reason.RAW_MAC_ADDRESS else value
    else:
        kept, nothing_found = _mask_unknown_fields(source, plain), value
    return kept if kept != plain else nothing_found


def _kept_key(source: Source[Any], key: bytes | None, parsed: object) -> bytes | None:
    is_store = isinstance(parsed, Event) and key == parsed.store.encode()
    return key if key is None or is_store else _secret(source).sub(_asterisks, key)


def _asterisks(found: re.Match[bytes]) -> bytes:
    return _MASK * len(found[0])


def _mask_unknown_fields(source: Source[Any], plain: bytes) -> bytes:
    """Mask what can be masked without changing the event. Numbered, so that no two field names become equal.

    All at once, and by bisection if that changes the event: a record may hold tens of thousands of addresses, and
    parsing it for each would take minutes.
    """
    found = [(number, match.span()) for number, match in enumerate(_secret(source).finditer(plain))]
    said = _parsed(source, plain) if found else None
    left = [found] if found else []
    while left:
        part = left.pop()
        without = _masked(plain, part)
        if _parsed(source, without) == said:
            plain = without
        elif len(part) > 1:
            left += [part[len(part) // 2 :], part[: len(part) // 2]]
    return plain


def _masked(plain: bytes, found: Sequence[tuple[int, tuple[int, int]]]) -> bytes:
    struck = bytearray(plain)
    for number, (start, end) in found:
        struck[start:end] = (b"%d" % number).rjust(end - start, _MASK)
    return bytes(struck)


def _has_fields_only(source: Source[Any], value: bytes) -> bool:
    """Whether an event has no unknown field, which is almost always so and fast to check."""
    try:
        return fields_of(value).keys() <= source.fields.keys()
    except msgspec.MsgspecError:
        return False


def _plain(value: bytes) -> bytes:
    """The value without escapes of relevant characters, and without the zero bytes of wider encodings."""
    if b"\\u00" in value:
        value = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]) if found[1] else found[0], value)
    return value.replace(b"\0", b"") if b"\0" in value else value


def _parsed(source: Source[Any], value: bytes) -> Event[Any] | DeadLetter:
    return parse(source, value, lambda _: DEFAULT_TERMS)


@cache
def _secret(source: Source[Any]) -> re.Pattern[bytes]:
    return re.compile(source.masked.pattern.encode() if source.masked else b"(?!)")
