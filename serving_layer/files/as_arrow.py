"""A table as Arrow or Parquet: typed columns, and in the schema's metadata what the answer says beside its rows."""

from collections.abc import Sequence
from decimal import Decimal, localcontext

import pyarrow as pa
import pyarrow.parquet as pq

from serving_layer.files.body import as_json
from serving_layer.files.table import Cell, Kind, Table

METADATA = b"galatea"
"""Under this key of the schema stands the answer as JSON, without its rows."""
PRECISION, MONEY_DIGITS, MIXED_DIGITS = 38, 4, 18
TYPES: dict[Kind, pa.DataType] = {
    Kind.TEXT: pa.string(),
    Kind.WHOLE: pa.int64(),
    Kind.MONEY: pa.decimal128(PRECISION, MONEY_DIGITS),
    Kind.REAL: pa.float64(),
    Kind.MIXED: pa.decimal128(PRECISION, MIXED_DIGITS),
    Kind.FLAG: pa.bool_(),
    Kind.INSTANT: pa.timestamp("ms", "UTC"),
}


def as_arrow(table: Table) -> bytes:
    """An IPC stream."""
    made, sink = _arrow(table), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as stream:
        stream.write_table(made)
    return bytes(sink.getvalue())


def as_parquet(table: Table) -> bytes:
    """A file of Parquet."""
    sink = pa.BufferOutputStream()
    pq.write_table(_arrow(table), sink, compression="zstd")
    return bytes(sink.getvalue())


def _arrow(table: Table) -> pa.Table:
    fields = [pa.field(name, TYPES[kind]) for name, kind in table.columns.items()]
    schema = pa.schema(fields, metadata={METADATA: as_json(table.about).encode()})
    cells = list(zip(*table.rows, strict=True)) or [()] * len(fields)
    made = [_column(of, kind) for of, kind in zip(cells, table.columns.values(), strict=True)]
    return pa.Table.from_arrays(made, schema=schema)


def _column(cells: Sequence[Cell], kind: Kind) -> pa.Array:
    if kind is Kind.INSTANT:
        return pa.array(cells, pa.string()).cast(TYPES[kind])
    if kind is Kind.TEXT:
        cells = [str(cell) if isinstance(cell, int | Decimal) else cell for cell in cells]
    elif kind is Kind.REAL:
        cells = [None if cell is None else float(cell) for cell in cells]  # type: ignore[misc]  # a number by its kind
    elif kind is Kind.MIXED:
        cells = [_short(cell) if isinstance(cell, Decimal) else cell for cell in cells]
    return pa.array(cells, TYPES[kind])


def _short(ratio: Decimal) -> Decimal:
    """A double below 0.1 may need more than 18 decimals to be written; sums never do."""
    with localcontext(prec=PRECISION):
        return round(ratio, MIXED_DIGITS)
