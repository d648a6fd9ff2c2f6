"""The one way from bytes to facts. HTTP ingest, `galatea ingest`, archive and speed all call it, so none can disagree.

Order of tests (R5): the header, the bytes, the fields, what follows from them, and then the clock. Duplicates
and age come after, and are not decided from one record alone. Pure: no I/O, no clock, the same answer for ever.

The Kafka key of a record is the text of its store: all deliveries of an event lie in one partition (R3).
"""

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec

from master_dataset.parsing import readers
from master_dataset.parsing.json_bytes import MAX_BYTES, check_size
from master_dataset.parsing.readers import FastReader
from master_dataset.parsing.results import DeadLetter, Event, InvalidRecordError, Payload, Reason
from master_dataset.registry.stores import DEFAULT_CURRENCY, Terms
from master_dataset.source import Record, Source
from master_dataset.sources import registered_sources

FUTURE_US = 3_600_000_000  # F of R5: a clock may be an hour fast
MARKER_HEADER = "galatea-marker"
SCHEMA_HEADER = "schema"
Headers = Sequence[tuple[str, bytes | None]]
TermsOf = Callable[[str], Terms]
encode = msgspec.json.Encoder().encode


def parse(
    source: Source[Payload],
    value: bytes | None,
    terms_of: TermsOf,
    *,
    received_us: int | None = None,
    headers: Headers = (),
) -> Event[Payload] | DeadLetter:
    """Give the event that the bytes say, or the reason why they say none. Never raises, whatever the bytes.

    `terms_of` knows a store by its text, and the default for an unknown one. `received_us` is the broker's stamp in
    microseconds since 1970; None before Kafka has given one, and then nothing is from the future. A marker is neither
    event nor dead letter: test `is_marker` first.
    """
    if headers and (letter := unknown_schema(headers)):
        return letter
    how = _compiled(source)
    try:
        read = how.reader.read(value, terms_of) if value and len(value) <= MAX_BYTES else None
        record, terms = read or readers.read(source, check_size(value), terms_of)
        payload = source.derive(record, terms)
    except InvalidRecordError as refused:
        return refused.letter()
    happened_ms: int = record[source.happened_at]
    if received_us is not None and happened_ms * 1000 > received_us + FUTURE_US:
        why = "lies more than an hour after the record was received"
        return InvalidRecordError(Reason.FROM_THE_FUTURE, why, f"/{source.happened_at}").letter()
    identity = encode(how.identity(record)).decode()  # a JSON list: no two identities share a text
    said = _signed(blake2b(encode(how.content(payload)), digest_size=8).digest())
    topic = source.topic
    return Event(topic, record[source.store], happened_ms, identity, identity_hash(topic, identity), said, payload)


def is_marker(headers: Headers) -> bool:
    """Tell whether this is a record of our own, written to know that everything before it was read (R2)."""
    return any(name == MARKER_HEADER for name, _ in headers)


def unknown_schema(headers: Headers) -> DeadLetter | None:
    """Refuse a record whose header `schema` names a source that no file defines: its bytes are not ours to guess at."""
    for name, value in headers:
        if name == SCHEMA_HEADER and (value or b"").decode(errors="replace") not in registered_sources():
            return InvalidRecordError(Reason.UNKNOWN_SCHEMA, "has a header `schema` that names no source").letter()
    return None


def identity_hash(topic: str, identity: str) -> int:
    """Give the signed 64-bit hash under which duplicates are looked for. Candidates only: the identity decides."""
    return _signed(blake2b(f"{topic}\0{identity}".encode(), digest_size=8).digest())


def _signed(digest: bytes) -> int:
    return int.from_bytes(digest, "big", signed=True)


class _Compiled(NamedTuple):
    """What a source says, as functions."""

    reader: FastReader
    identity: Callable[[Record], Any]
    content: Callable[[Any], Any]


@cache
def _compiled(source: Source[Any]) -> _Compiled:
    """Make them once per process; equal sources (also after pickling) share them."""
    return _Compiled(FastReader(source), itemgetter(*source.identity), attrgetter(*source.content))


KeyOf = Callable[[bytes], bytes | None]


@cache
def key_of(source: Source[Any]) -> KeyOf:
    """Give a function from a value to its key, quick because it reads the one field.

    The key is None where no store can be read: such a record is no event, whatever else it holds. The reverse does not
    hold, `parse` decides; but an event is always keyed by its `store`.
    """
    store = source.fields[source.store]
    name = source.store
    decoder = msgspec.json.Decoder(msgspec.defstruct("OnlyStore", [(name, int | str)]))

    def key(value: bytes) -> bytes | None:
        try:
            text: str = store.read(getattr(decoder.decode(value), name), DEFAULT_CURRENCY)  # type: ignore[union-attr]
        except (msgspec.MsgspecError, InvalidRecordError, ValueError, RecursionError):
            return None
        return text.encode()

    return key
