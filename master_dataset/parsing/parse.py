"""Parse bytes to events. HTTP ingest, `galatea ingest`, archive and speed all call `parse`, so they cannot disagree.

A record is checked in this order (R5): header, bytes, fields, what is derived from them, and the time. Duplicates and
age are decided later, as they depend on other records. Parsing is pure: no I/O, no clock, always the same result.

The Kafka key of a record is the id of its store, so all deliveries of an event lie in one partition (R3).
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
from master_dataset.registry.stores import DEFAULT_CURRENCY
from master_dataset.registry.terms_history import TermsOf
from master_dataset.source import Record, Source
from master_dataset.sources import registered_sources

FUTURE_US = 3_600_000_000  # F of R5: a clock may be an hour fast
MARKER_HEADER = "galatea-marker"
SCHEMA_HEADER = "schema"
STAMPED_AT = "stamped_at"
"""The column with the broker's timestamp, where a record may count as received later (R3)."""
Headers = Sequence[tuple[str, bytes | None]]
encode = msgspec.json.Encoder().encode


def parse(
    source: Source[Payload],
    value: bytes | None,
    terms_of: TermsOf,
    *,
    received_us: int | None = None,
    headers: Headers = (),
) -> Event[Payload] | DeadLetter:
    """Parse the value of a record. Never raises, whatever the bytes.

    A marker is neither event nor dead letter: check `is_marker` first.

    Args:
        source: The source of the topic.
        value: The value of the record; None for a tombstone.
        terms_of: Returns the terms of a store by its id; default terms for one that is not registered.
        received_us: The broker's timestamp, microseconds since 1970. None before Kafka has stamped the record; then
            no event is from the future.
        headers: The headers of the record.

    Returns:
        The event, or a dead letter with the reason why it is none.
    """
    if headers and (dead_letter := unknown_schema(headers)):
        return dead_letter
    how = _compiled(source)
    try:
        read = how.reader.read(value, terms_of) if value and len(value) <= MAX_BYTES else None
        record, terms = read or readers.read(source, check_size(value), terms_of)
        payload = source.derive(record, terms)
    except InvalidRecordError as error:
        return error.dead_letter()
    happened_ms: int = record[source.happened_at]
    if received_us is not None and happened_ms * 1000 > received_us + FUTURE_US:
        why = "lies more than an hour after the record was received"
        return InvalidRecordError(Reason.FROM_THE_FUTURE, why, f"/{source.happened_at}").dead_letter()
    identity = encode(how.identity(record)).decode()  # a JSON list: no two identities share a text
    said = _signed(blake2b(encode(how.content(payload)), digest_size=8).digest())
    topic = source.topic
    return Event(topic, record[source.store], happened_ms, identity, identity_hash(topic, identity), said, payload)


def is_marker(headers: Headers) -> bool:
    """Return whether a record is a marker of Galatea, which shows that everything before it was read (R2)."""
    return any(name == MARKER_HEADER for name, _ in headers)


def unknown_schema(headers: Headers) -> DeadLetter | None:
    """Return a dead letter if the header `schema` names an unknown source; None otherwise."""
    for name, value in headers:
        if name == SCHEMA_HEADER and (value or b"").decode(errors="replace") not in registered_sources():
            return InvalidRecordError(Reason.UNKNOWN_SCHEMA, "has a header `schema` that names no source").dead_letter()
    return None


def identity_hash(topic: str, identity: str) -> int:
    """Return the signed 64-bit hash by which duplicates are looked for. The identity decides whether they are."""
    return _signed(blake2b(f"{topic}\0{identity}".encode(), digest_size=8).digest())


def _signed(digest: bytes) -> int:
    return int.from_bytes(digest, "big", signed=True)


class _Compiled(NamedTuple):
    """The compiled functions of a source."""

    reader: FastReader
    identity: Callable[[Record], Any]
    content: Callable[[Any], Any]


@cache
def _compiled(source: Source[Any]) -> _Compiled:
    """Once per process: sources are equal by value, also after pickling."""
    return _Compiled(FastReader(source), itemgetter(*source.identity), content_of(source))


def content_of(source: Source[Any]) -> Callable[[Any], Any]:
    """Return what the sender said in a payload: `content`, and `content_later` where that says anything."""
    content = attrgetter(*source.content)
    if not source.content_later:
        return content
    later, unsaid = attrgetter(*source.content_later), unsaid_of(source.content_later)

    def with_later(payload: Any) -> Any:  # noqa: ANN401 - a payload of any source
        said = later(payload)
        return content(payload) if said == unsaid else (content(payload), said)

    return with_later


def unsaid_of(columns: tuple[str, ...]) -> tuple[None, ...] | None:
    """What `attrgetter` of these columns returns where all are null."""
    return (None,) * len(columns) if len(columns) > 1 else None


KeyOf = Callable[[bytes], bytes | None]


@cache
def key_of(source: Source[Any]) -> KeyOf:
    """Return a function from the value of a record to its key; it reads only the store.

    The key is None if no store can be read: such a record is no event. `parse` decides about all others, and an event
    is always keyed by its `store`.
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
