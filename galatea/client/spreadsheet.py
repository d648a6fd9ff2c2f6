"""Answers as CSV (RFC 4180): a line of names, every digit as the API wrote it, an empty cell for what nobody knows."""

import csv
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from galatea.client.rows import Plain, names, rows

if TYPE_CHECKING:
    from galatea.client.answers import Answer

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A text that begins so is a formula to spreadsheets, whoever wrote it (OWASP, CSV injection)."""


def write_csv(answers: Sequence["Answer"], file: str | os.PathLike[str] | TextIO) -> None:
    """Into a path, as UTF-8, or into an open text file."""
    if isinstance(file, str | os.PathLike):
        with Path(file).open("w", encoding="utf-8", newline="") as opened:
            write_csv(answers, opened)
        return
    writer = csv.writer(file)
    writer.writerow(names(answers))
    writer.writerows([text(cell) for cell in row.values()] for row in rows(answers))


def text(cell: Plain) -> str:
    """A number is no text: `-5.00` stays as it is."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        return f"'{cell}" if cell.startswith(FORMULA) else cell
    if isinstance(cell, datetime):
        spec = "milliseconds" if cell.microsecond else "seconds"
        return cell.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=spec) + "Z"
    if isinstance(cell, Decimal):
        return f"{cell:f}"  # never 1E+3
    return "" if cell is None else str(cell)
