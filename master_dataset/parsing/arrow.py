"""Values as Arrow columns: the types of a payload, and values to columns and back."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import msgspec
import pyarrow as pa

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


def plain(column: pa.Array) -> list[Any]:
    """Return the values of a column, a struct as the tuple of its fields: as JSON has a Struct that is `array_like`."""
    if pa.types.is_struct(column.type):
        return list(zip(*map(plain, column.flatten()), strict=True))
    if pa.types.is_list(column.type):
        values, ends = plain(column.values), column.offsets.to_pylist()
        found = [values[start:end] for start, end in pairwise(ends)]
        return (
            found
            if not column.null_count
            else [each if there else None for each, there in zip(found, column.is_valid().to_pylist(), strict=True)]
        )
    listed: list[Any] = (
        column.to_pylist() if column.null_count or not pa.types.is_integer(column.type) else column.to_numpy().tolist()
    )
    return listed


def released(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; at their end, give memory that Arrow has freed back to the system.

    Arrow keeps what its busiest moment needed. For a worker of Spark that is a backlog, which may not come again.
    """
    yield from batches
    pa.default_memory_pool().release_unused()
