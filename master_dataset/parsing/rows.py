"""Records of Kafka as typed rows, batch by batch: what archive and speed run inside Spark's `mapInArrow`.

In: `key`, `value` (binary), `topic`, `partition`, `offset`, `timestamp`; if there are any `headers`; and `stamped_at`
where that is not the broker's timestamp, by which the terms of stores are chosen. Out: one row per record, in the same
order, with the columns of `output_schema`. Every row has position and bytes. By `kind`, an `event` also has the columns
from store to payload, a `dead_letter` reason, field and sentence, and a `marker` neither. The annotations of a payload
define the types of its columns.
"""

from collections.abc import Container, Iterator, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.arrow import array, arrow_fields
from master_dataset.parsing.columnar.reader import WORTHWHILE, ColumnarReader, SureEvents, columnar_reader
from master_dataset.parsing.masking import mask_batch
from master_dataset.parsing.parse import STAMPED_AT, Headers, is_marker, parse, unknown_schema
from master_dataset.parsing.results import DeadLetter, Event
from master_dataset.registry.terms_history import TermsUntil
from master_dataset.source import Source

as_tuple = msgspec.structs.astuple


def transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[Sequence[Any]]:
    """Return the columns of rows, also of none."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


INSTANT = pa.timestamp("us", tz="UTC")
_UNKNOWN_US = -(2**63)
DAY_MS = timedelta(days=1) // timedelta(milliseconds=1)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
POSITION_FIELDS = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("received_at", INSTANT)]
FACT = [
    ("store", pa.string()),
    ("happened_at", INSTANT),
    ("day", pa.date32()),  # the UTC day of happened_at
    ("identity", pa.string()),
    ("identity_hash", pa.int64()),
    ("payload_hash", pa.int64()),
]
REJECTION = [("reason", pa.string()), ("field", pa.string()), ("sentence", pa.string())]
BYTES = [("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)]
Parsed = Event[Any] | DeadLetter | None  # None is a marker
EVENT, DEAD_LETTER, MARKER = "event", "dead_letter", "marker"
"""The values of `kind`."""


@cache
def output_schema(source: Source[Any]) -> pa.Schema:
    """Return the columns of `rows`: kind, position, fact, payload, rejection, bytes."""
    return pa.schema(
        [("kind", pa.string()), *POSITION_FIELDS, *FACT, *arrow_fields(source.payload), *REJECTION, *BYTES]
    )


def rows(
    source: Source[Any],
    batches: Iterator[pa.RecordBatch],
    terms: TermsUntil,
    *,
    unread: Container[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Parse every record of some batches.

    Args:
        source: The source of the topic.
        batches: Batches of records, with the columns of `record_stream`.
        terms: Returns how records are read.
        unread: Payload columns that nobody reads; they are left NULL, because building them takes time.

    Yields:
        One batch of rows for each batch, with the columns of `output_schema`.
    """
    reader = columnar_reader(source)
    for batch in batches:
        if reader is None or batch.num_rows < WORTHWHILE:
            yield read_singly(source, batch, terms, unread)
        else:
            yield _by_columns(source, reader, batch, terms, unread)


def _by_columns(
    source: Source[Any], reader: ColumnarReader, batch: pa.RecordBatch, terms: TermsUntil, unread: Container[str]
) -> pa.RecordBatch:
    """Read what is sure by columns, and the other records singly."""
    values = batch.column("value").cast(pa.binary())
    if (headers := headers_of(batch)) is not None:
        readable = [not is_marker(each) and unknown_schema(each) is None for each in headers]
        values = pc.if_else(pa.array(readable), values, None)
    keys = batch.column("key") if source.masked is not None and "key" in batch.schema.names else None
    stamps = _stamps(batch).fill_null(_UNKNOWN_US).to_numpy()  # what has none is not sure
    terms_at = _stamps(batch, STAMPED_AT).fill_null(_UNKNOWN_US).to_numpy()
    first_us, last_us = int(terms_at.min()), int(terms_at.max())
    history = terms(last_us)
    if not history.is_steady(first_us, last_us):  # stores were registered in between
        return read_singly(source, batch, terms, unread)
    found = reader.events(values, history.at(last_us), stamps, keys)
    if len(found.at) == 0:
        return read_singly(source, batch, terms, unread)
    if len(found.at) == batch.num_rows:
        return _event_rows(source, batch, found, unread)
    rest = np.setdiff1d(np.arange(batch.num_rows), found.at, assume_unique=True)
    sure = _event_rows(source, batch.take(pa.array(found.at)), found, unread)
    others = read_singly(source, batch.take(pa.array(rest)), terms, unread)
    order = np.argsort(np.concatenate([found.at, rest]))
    return pa.concat_batches([sure, others]).take(pa.array(order))


def _event_rows(
    source: Source[Any], batch: pa.RecordBatch, found: SureEvents, unread: Container[str]
) -> pa.RecordBatch:
    schema, number, happened_ms = output_schema(source), batch.num_rows, found.happened_ms
    facts = (
        found.stores,
        pa.array(happened_ms * 1000),
        pa.array((happened_ms // DAY_MS).astype(np.int32)),
        found.identities,
        pa.array(found.identity_hashes),
        pa.array(found.payload_hashes),
    )
    columns = [
        pa.repeat(EVENT, number),
        *_position(batch),
        *(column.cast(kind) for column, (_, kind) in zip(facts, FACT, strict=True)),
        *(
            pa.nulls(number, schema.field(name).type) if name in unread else found.payload[name]
            for name in source.columns
        ),
        *(pa.nulls(number, kind) for _, kind in REJECTION),
        *_bytes(batch),  # masking would find nothing: the records have only fields that the source names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def read_singly(
    source: Source[Any], batch: pa.RecordBatch, terms: TermsUntil, unread: Container[str] = ()
) -> pa.RecordBatch:
    """Parse one record after the other: what `rows` yields for the batch, whatever its size."""
    parsed = _parsed(source, batch, terms)
    columns = [
        pa.array([_kind(each) for each in parsed], pa.string()),
        *_position(batch),
        *_facts(parsed),
        *_payloads(source.payload, parsed, unread),
        *_rejections(parsed),
        *_bytes(batch if source.masked is None else mask_batch(source, batch, parsed)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=output_schema(source))


def _stamps(batch: pa.RecordBatch, column: str = "timestamp") -> pa.Array:
    """When the records were received, microseconds since 1970; or when the broker says, if `column` is there."""
    name = column if column in batch.schema.names else "timestamp"
    return batch.column(name).cast(INSTANT).cast(pa.int64())


def _parsed(source: Source[Any], batch: pa.RecordBatch, terms: TermsUntil) -> list[Parsed]:
    values: list[bytes | None] = batch.column("value").to_pylist()
    stamps: list[int | None] = _stamps(batch).to_pylist()
    known: list[int] = _stamps(batch, STAMPED_AT).fill_null(_UNKNOWN_US).to_pylist()
    history, headers = terms(max(known, default=0)), headers_of(batch) or [()] * len(values)
    return [
        None if is_marker(each) else parse(source, value, history.at(us), received_us=stamp, headers=each)
        for value, stamp, us, each in zip(values, stamps, known, headers, strict=True)
    ]


def headers_of(batch: pa.RecordBatch) -> list[Headers] | None:
    """Return the headers of each record; None if no record has any, as in almost every batch."""
    if "headers" not in batch.schema.names or not len(batch.column("headers").flatten()):
        return None
    listed = batch.column("headers").to_pylist()
    return [[(header["key"], header["value"]) for header in each or ()] for each in listed]


def _kind(parsed: Parsed) -> str:
    if parsed is None:
        return MARKER
    return EVENT if isinstance(parsed, Event) else DEAD_LETTER


def _position(batch: pa.RecordBatch) -> list[pa.Array]:
    names = ("topic", "partition", "offset", "timestamp")
    return [batch.column(name).cast(kind) for name, (_, kind) in zip(names, POSITION_FIELDS, strict=True)]


def _facts(parsed: Sequence[Parsed]) -> list[pa.Array]:
    nothing = (None,) * len(FACT)
    facts = [
        (e.store, e.happened_ms * 1000, e.happened_ms // DAY_MS, e.identity, e.identity_hash, e.payload_hash)
        if isinstance(e, Event)
        else nothing
        for e in parsed
    ]
    columns = transposed(facts, len(FACT))
    return [pa.array(column, kind) for column, (_, kind) in zip(columns, FACT, strict=True)]


def _payloads(payload: type[msgspec.Struct], parsed: Sequence[Parsed], unread: Container[str]) -> list[pa.Array]:
    payloads = [each.payload if isinstance(each, Event) else None for each in parsed]
    return [
        pa.nulls(len(parsed), field.type)
        if field.name in unread
        else array([None if each is None else getattr(each, field.name) for each in payloads], field.type)
        for field in arrow_fields(payload)
    ]


def _rejections(parsed: Sequence[Parsed]) -> list[pa.Array]:
    nothing = (None,) * len(REJECTION)
    rejections = [as_tuple(each) if isinstance(each, DeadLetter) else nothing for each in parsed]
    columns = transposed(rejections, len(REJECTION))
    return [pa.array(column, kind) for column, (_, kind) in zip(columns, REJECTION, strict=True)]


def _bytes(batch: pa.RecordBatch) -> list[pa.Array]:
    there = batch.schema.names
    return [batch.column(name).cast(kind) if name in there else pa.nulls(len(batch), kind) for name, kind in BYTES]
