"""Records of Kafka as typed rows, batch by batch: what archive and speed run inside Spark's `mapInArrow`.

In: `key`, `value` (binary), `topic`, `partition`, `offset`, `timestamp`, and `headers` if there are any. Out: one row
per record, in the same order, with the columns of `output_schema`. Every row has position and bytes. By `kind`, an
`event` also has the columns from store to payload, a `dead_letter` reason, field and sentence, and a `marker` neither.
The annotations of a payload define the types of its columns.
"""

from collections.abc import Container, Iterator, Sequence
from datetime import timedelta
from itertools import accumulate, chain
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import msgspec
import pyarrow as pa

from master_dataset.parsing.masking import mask_batch
from master_dataset.parsing.parse import Headers, TermsOf, is_marker, parse
from master_dataset.parsing.results import DeadLetter, Event
from master_dataset.source import Source

as_tuple = msgspec.structs.astuple
SCALARS = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}


def arrow_fields(payload: type[msgspec.Struct]) -> list[pa.Field]:
    """Return one Arrow field per field of a Struct, in its order."""
    return [pa.field(field.name, arrow_type(field.type)) for field in msgspec.structs.fields(payload)]


def arrow_type(annotation: Any) -> pa.DataType:  # noqa: ANN401 - a type form, for which Python 3.11 has no type
    """Return the Arrow type of `str`, `int`, `bool`, an optional one of these, a list or a Struct."""
    if isinstance(annotation, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    if get_origin(annotation) is list:
        return pa.list_(arrow_type(get_args(annotation)[0]))
    if annotation in SCALARS:
        return SCALARS[annotation]
    return pa.struct(arrow_fields(annotation))


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of values: None becomes null, a Struct a struct. Builds columns, never row by row."""
    if pa.types.is_list(kind):
        lengths = [0 if value is None else len(value) for value in values]
        offsets: list[int | None] = [0, *accumulate(lengths)]
        for at, value in enumerate(values):
            if value is None:
                offsets[at] = None  # Arrow's mark of a null list
        inner = array(list(chain.from_iterable(value for value in values if value)), kind.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, type=kind)
    if pa.types.is_struct(kind):
        children = [array(list(map(attrgetter(field.name), values)), field.type) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    return pa.array(values, kind)


def transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[Sequence[Any]]:
    """Return the columns of rows, also of none."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


INSTANT = pa.timestamp("us", tz="UTC")
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


def output_schema(source: Source[Any]) -> pa.Schema:
    """Return the columns of `rows`: kind, position, fact, payload, rejection, bytes."""
    return pa.schema(
        [("kind", pa.string()), *POSITION_FIELDS, *FACT, *arrow_fields(source.payload), *REJECTION, *BYTES]
    )


def rows(
    source: Source[Any],
    batches: Iterator[pa.RecordBatch],
    terms_of: TermsOf,
    *,
    unread: Container[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Parse every record of some batches.

    Args:
        source: The source of the topic.
        batches: Batches of records, with the columns of `record_stream`.
        terms_of: Returns the terms of a store.
        unread: Payload columns that nobody reads; they are left NULL, because building them takes time.

    Yields:
        One batch of rows for each batch, with the columns of `output_schema`.
    """
    schema = output_schema(source)
    for batch in batches:
        parsed = _parsed(source, batch, terms_of)
        columns = [
            pa.array([_kind(each) for each in parsed], pa.string()),
            *_position(batch),
            *_facts(parsed),
            *_payloads(source.payload, parsed, unread),
            *_rejections(parsed),
            *_bytes(batch if source.masked is None else mask_batch(source, batch, parsed)),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _parsed(source: Source[Any], batch: pa.RecordBatch, terms_of: TermsOf) -> list[Parsed]:
    values: list[bytes | None] = batch.column("value").to_pylist()
    stamps: list[int] = batch.column("timestamp").cast(INSTANT).cast(pa.int64()).to_pylist()
    headers = headers_of(batch)
    if headers is None:
        return [parse(source, value, terms_of, received_us=stamp) for value, stamp in zip(values, stamps, strict=True)]
    return [
        None if is_marker(each) else parse(source, value, terms_of, received_us=stamp, headers=each)
        for value, stamp, each in zip(values, stamps, headers, strict=True)
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
