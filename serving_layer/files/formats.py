"""File formats of tables: CSV, Parquet and Arrow."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from serving_layer.files.tables import Cell, ColumnType, Table, as_json

METADATA = b"galatea"
"""Under this key of the schema stands the answer as JSON, without its rows."""
PRECISION, MONEY_DIGITS, MIXED_DIGITS = 38, 4, 18
TYPES: dict[ColumnType, pa.DataType] = {
    ColumnType.TEXT: pa.string(),
    ColumnType.WHOLE: pa.int64(),
    ColumnType.MONEY: pa.decimal128(PRECISION, MONEY_DIGITS),
    ColumnType.REAL: pa.float64(),
    ColumnType.MIXED: pa.decimal128(PRECISION, MIXED_DIGITS),
    ColumnType.FLAG: pa.bool_(),
    ColumnType.INSTANT: pa.timestamp("ms", "UTC"),
    ColumnType.DATE: pa.date32(),
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


def _column(cells: Sequence[Cell], kind: ColumnType) -> pa.Array:
    if kind in (ColumnType.INSTANT, ColumnType.DATE):
        return pa.array(cells, pa.string()).cast(TYPES[kind])
    if kind is ColumnType.TEXT:
        cells = [str(cell) if isinstance(cell, int | Decimal) else cell for cell in cells]
    elif kind is ColumnType.REAL:
        cells = [None if cell is None else float(cell) for cell in cells]  # type: ignore[misc]  # a number by its kind
    elif kind is ColumnType.MIXED:
        cells = [_short(cell) if isinstance(cell, Decimal) else cell for cell in cells]
    return pa.array(cells, TYPES[kind])


def _short(ratio: Decimal) -> Decimal:
    """A double below 0.1 may need more than 18 decimals to be written; sums never do."""
    with localcontext(prec=PRECISION):
        return round(ratio, MIXED_DIGITS)


FORMULA = re.compile(
    r"^(?=[^\S\t\r\n]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])"
    r"|[;|\t\r\n](?:[^\S\t\r\n]|\")*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
"""Where a text is, or goes on as, a formula to spreadsheets, whoever wrote it (OWASP, CSV injection).

One whose list separator is not the comma, as in German or Slovak, splits a cell at `;`, `|`, a tab or a line break:
quotes hold a cell together only if they are at its start, as that spreadsheet sees it.
"""


def without_formula(text: str) -> str:
    """A text of CSV, with a quote wherever a spreadsheet would take what follows for a formula."""
    return FORMULA.sub(r"\g<0>'", text)


def as_csv(table: Table) -> bytes:
    """The file. What the table says of itself as a whole has no place in it but in its columns."""
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(table.columns)
    writer.writerows([_cell(cell) for cell in row] for row in table.rows)
    return written.getvalue().encode()


def _cell(cell: Cell) -> str:
    """A number is no text: `-5.00` stays as it is."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        return without_formula(cell)
    return "" if cell is None else str(cell)


Format = Literal["json", "csv", "parquet", "arrow"]


class FileFormat(NamedTuple):
    """How a table becomes a file. `ending`: of the file's name. `has_metadata`: whether it can say what is no row."""

    media_type: str
    ending: str
    write: Callable[[Table], bytes]
    has_metadata: bool


FILE_FORMATS: dict[Format, FileFormat] = {
    "csv": FileFormat("text/csv; charset=utf-8", "csv", as_csv, has_metadata=False),
    "parquet": FileFormat("application/vnd.apache.parquet", "parquet", as_parquet, has_metadata=True),
    "arrow": FileFormat("application/vnd.apache.arrow.stream", "arrows", as_arrow, has_metadata=True),
}
"""All but JSON, which is no table."""
