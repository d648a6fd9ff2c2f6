"""A table: what its columns are called and made of, its rows, and what is said of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

Cell = str | int | bool | Decimal | None
"""As the JSON answer writes it. Numbers with a decimal point are `Decimal`, so that no digit is lost."""


class Kind(StrEnum):
    """What a column holds. The kinds of numbers, from narrow to wide: WHOLE, MONEY, MIXED; REAL stands apart."""

    TEXT = "text"
    WHOLE = "whole"
    MONEY = "money"
    """Sums of money in the major unit, and whole numbers: at most four decimals, the most that ISO 4217 knows."""
    REAL = "real"
    """Ratios: the nearest double, as in JSON."""
    MIXED = "mixed"
    """Sums and ratios in one column: up to 18 decimals."""
    FLAG = "flag"
    INSTANT = "instant"
    """ISO 8601 in UTC."""


@dataclass(frozen=True)
class Table:
    """`rows` have a cell for each column, in order. `about`: what holds for the table as a whole, without its rows."""

    columns: Mapping[str, Kind]
    rows: Sequence[tuple[Cell, ...]]
    about: Mapping[str, object]
