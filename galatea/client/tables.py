"""Answers as tables of columns. Libraries are loaded when they are asked for, and only then have to be there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from galatea.client.kinds import DIGITS, PLACES, Kind, fitting, kind_of
from galatea.client.rows import names, rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from galatea.client.answers import Answer


def to_arrow(answers: Sequence["Answer"]) -> "pa.Table":
    """Money is `decimal128`, counts `int64`, ratios the doubles that the API wrote, lists of items JSON text."""
    with _needed("pyarrow"):
        import pyarrow as pa  # noqa: PLC0415 - loaded when it is asked for
    types = {
        Kind.TEXT: pa.string(),
        Kind.WHOLE: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TRUTH: pa.bool_(),
        Kind.INSTANT: pa.timestamp("us", "UTC"),
        **{kind: pa.decimal128(DIGITS, at) for kind, at in PLACES.items()},
    }
    found = rows(answers)
    units = {answer.unit for answer in answers}
    columns = {}
    for name in names(answers):
        kind = kind_of(name, units, [row[name] for row in found])
        columns[name] = pa.array([fitting(row[name], kind) for row in found], types[kind])
    return pa.table(columns)


def to_pandas(answers: Sequence["Answer"]) -> "pd.DataFrame":
    """Money is `ArrowDtype(decimal128)`, counts are `Int64`.

    Both since they may be missing, which pandas' own integers cannot be, and a float would not be exact.
    """
    with _needed("pandas"):
        import pandas as pd  # noqa: PLC0415 - loaded when it is asked for
    table = to_arrow(answers)
    whole = {field.type: pd.Int64Dtype() for field in table.schema if str(field.type) == "int64"}
    exact = {field.type: pd.ArrowDtype(field.type) for field in table.schema if str(field.type).startswith("decimal")}
    frame: pd.DataFrame = table.to_pandas(types_mapper={**whole, **exact}.get)
    return frame


def to_polars(answers: Sequence["Answer"]) -> "pl.DataFrame":
    """Money is `Decimal`, exact; ratios are `Float64`, counts `Int64`."""
    with _needed("polars"):
        import polars as pl  # noqa: PLC0415 - loaded when it is asked for
    return pl.DataFrame(to_arrow(answers))


@contextmanager
def _needed(library: str) -> Iterator[None]:
    """ImportError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        told = f"`{library}` is not installed, and this table is made with it: pip install {library}"
        raise ImportError(told, name=library) from error
