"""Typed payloads as Arrow columns: the annotations of a payload say the types, so a source says its columns once."""

from collections.abc import Sequence
from itertools import accumulate, chain
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import msgspec
import pyarrow as pa

as_tuple = msgspec.structs.astuple
SCALARS = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}


def arrow_fields(payload: type[msgspec.Struct]) -> list[pa.Field]:
    """Give one Arrow field per field of a Struct, in its order."""
    return [pa.field(field.name, arrow_type(field.type)) for field in msgspec.structs.fields(payload)]


def arrow_type(annotation: Any) -> pa.DataType:  # noqa: ANN401 - a type form, for which Python 3.11 has no type
    """Give the Arrow type of `str`, `int`, `bool`, an optional one of these, a list, or a Struct."""
    if isinstance(annotation, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    if get_origin(annotation) is list:
        return pa.list_(arrow_type(get_args(annotation)[0]))
    if annotation in SCALARS:
        return SCALARS[annotation]
    return pa.struct(arrow_fields(annotation))


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Give the column of `values`: None is null, Structs become structs. Columns of columns, never row by row."""
    if pa.types.is_list(kind):
        lengths = [0 if value is None else len(value) for value in values]
        offsets: list[int | None] = [0, *accumulate(lengths)]
        for at, value in enumerate(values):
            if value is None:
                offsets[at] = None  # Arrow's mark of a null list
        inner = array(list(chain.from_iterable(value for value in values if value)), kind.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, type=kind)
    if pa.types.is_struct(kind):
        columns = transposed([as_tuple(value) for value in values], kind.num_fields)
        children = [array(column, field.type) for column, field in zip(columns, kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    return pa.array(values, kind)


def transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[Sequence[Any]]:
    """Give the columns of some rows, also of none."""
    return list(zip(*rows, strict=True)) if rows else [()] * width
