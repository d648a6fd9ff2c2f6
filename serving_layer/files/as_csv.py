"""A table as CSV (RFC 4180): UTF-8, a line of names, numbers as JSON writes them, an empty cell for null."""

import csv
import io

from serving_layer.files.table import Cell, Table

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A text that begins so, in either width, is a formula to spreadsheets, whoever wrote it (OWASP, CSV injection)."""


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
        return f"'{cell}" if cell.startswith(FORMULA) else cell
    return "" if cell is None else str(cell)
