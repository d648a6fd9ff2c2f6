"""What every answer about metrics can be turned into: the tidy long form, a row per point."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from galatea.client import tables
from galatea.client.rows import Row, rows
from galatea.client.spreadsheet import write_csv

if TYPE_CHECKING:
    import os

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from galatea.client.answers import Answer


class Tidy:
    """Columns: whose it is, `start`, `value`, `final`, flags, the comparison if one was asked for, and `as_of`."""

    __slots__ = ()

    @property
    @abstractmethod
    def each(self) -> Sequence["Answer"]:
        """The answers, one per metric."""

    def to_rows(self) -> list[Row]:
        """A dict per point. Numbers are as the API wrote them, flags joined by `;`, lists of items JSON text."""
        return rows(self.each)

    def to_arrow(self) -> "pa.Table":
        """A pyarrow table: money is `decimal128`, exact; counts `int64`; ratios doubles, as the API makes them."""
        return tables.to_arrow(self.each)

    def to_pandas(self) -> "pd.DataFrame":
        """A pandas frame: money is `ArrowDtype(decimal128)`, exact and summed exactly; `.astype(float)` to draw it."""
        return tables.to_pandas(self.each)

    def to_polars(self) -> "pl.DataFrame":
        """A Polars frame: money is `Decimal`, exact."""
        return tables.to_polars(self.each)

    def to_csv(self, file: "str | os.PathLike[str] | TextIO") -> None:
        """Into a path or an open text file; every digit as the API wrote it."""
        write_csv(self.each, file)
