"""Answers as rows: one per metric, store, dimensions and point, with what it rests on. A cell is one plain value.

Answers as CSV (RFC 4180): a line of names, every digit as the API wrote it, an empty cell for what nobody knows.

What the columns of a table hold: by their names, and by the units of what was asked for.

Answers as tables of columns. Libraries are loaded when they are asked for, and only then have to be there.

What every answer about metrics can be turned into: the tidy long form, a row per point.
"""

import csv
import os
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from galatea.client.answers import Answer, Point, Series, Value

Plain = str | int | bool | Decimal | datetime | None
Row = dict[str, Plain]
LABELS = ("weekday", "hour", "hours_present")
COMPARED = ("before", "change", "change_points", "before_flags", "days_now", "days_before", "partial")
BASIS = ("publication", "cut", "speed_as_of", "waiting_for_batch", "layers", "missing")
JSON = msgspec.json.Encoder(decimal_format="number")


def rows(answers: Sequence["Answer"]) -> list[Row]:
    """In the order of the answers. Every row has the same columns."""
    columns = names(answers)
    return [{name: row.get(name) for name in columns} for answer in answers for row in _rows(answer)]


def names(answers: Sequence["Answer"]) -> list[str]:
    """The columns in order, by what was asked. `by=currency` and the currency of an answer are one column."""
    split = [name for answer in answers for series in answer.series for name in series.dimensions]
    labels = LABELS if any(answer.grain == "hour_of_week" for answer in answers) else ()
    compared = COMPARED if any(answer.compare for answer in answers) else ()
    found = ["metric", "store", *split, "start", *labels, "value", "final", "flags", *compared]
    return list(dict.fromkeys([*found, "unit", "currency", "timezone", "grain", *BASIS]))


def joined(texts: Iterable[str]) -> str | None:
    """Several names in one cell; None for none."""
    return ";".join(texts) or None


def _rows(answer: "Answer") -> Iterator[Row]:
    basis = answer.as_of
    shared: Row = {
        "metric": answer.metric,
        "unit": answer.unit,
        "currency": answer.currency,
        "grain": answer.grain,
        "publication": basis.publication,
        "cut": basis.cut,
        "speed_as_of": basis.speed_as_of,
        "waiting_for_batch": basis.waiting_for_batch,
        "layers": joined(basis.layers),
        "missing": joined(basis.missing),
    }
    for series in answer.series:
        whose = shared | _whose(series)
        for point in series.points:
            yield whose | _of_point(answer, point)


def _whose(series: "Series") -> Row:
    return {"store": series.store, "timezone": series.timezone, **series.dimensions}


def _of_point(answer: "Answer", point: "Point") -> Row:
    """What holds for the whole answer is a flag of each row: rows are taken apart."""
    days = point.days or {}
    return {
        "start": point.start,
        "value": plain(point.value),
        "final": point.final,
        "flags": joined([*answer.flags, *point.flags]),
        "before": plain(point.before),
        "change": point.change,
        "change_points": point.change_points,
        "before_flags": joined(point.before_flags),
        "days_now": days.get("now"),
        "days_before": days.get("before"),
        "partial": point.partial,
        "weekday": point.weekday,
        "hour": point.hour,
        "hours_present": point.hours_present,
    }


def plain(value: "Value") -> int | Decimal | str | None:
    """A list of items is JSON text in a table."""
    return JSON.encode(value).decode() if isinstance(value, tuple) else value


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


WHOLE = frozenset({"weekday", "hour", "days_now", "days_before", "publication", "waiting_for_batch"})
INSTANTS = frozenset({"start", "cut", "speed_as_of"})
REALS = frozenset({"change", "change_points", "hours_present"})
TRUTHS = frozenset({"final", "partial"})
VALUES = frozenset({"value", "before"})
DIGITS = 38
"""Of a decimal, as many as Arrow has."""


class Kind(StrEnum):
    """Types of columns. MONEY: the places that every currency of ISO 4217 fits in; FINE: a mean of money has more."""

    TEXT = "text"
    WHOLE = "whole"
    MONEY = "money"
    FINE = "fine"
    REAL = "real"
    TRUTH = "truth"
    INSTANT = "instant"


PLACES = {Kind.MONEY: 4, Kind.FINE: 18}


def kind_of(column: str, units: Collection[str], cells: Iterable[Plain]) -> Kind:
    """Of one column."""
    if column in VALUES:
        return _kind_of_values(set(units), cells)
    named = {Kind.INSTANT: INSTANTS, Kind.TRUTH: TRUTHS, Kind.REAL: REALS, Kind.WHOLE: WHOLE}
    return next((kind for kind, names in named.items() if column in names), Kind.TEXT)


def fitting(cell: Plain, kind: Kind) -> object:
    """A cell as a column of that kind holds it; None stays None."""
    if not isinstance(cell, int | Decimal) or isinstance(cell, bool):
        return cell
    if kind in PLACES:
        with localcontext(prec=DIGITS):  # a mean of money is a double already: no digit of it is beyond the places
            return round(Decimal(cell), PLACES[kind])
    if kind is Kind.TEXT:
        return str(cell)
    return float(cell) if kind is Kind.REAL else cell


def _kind_of_values(units: set[str], cells: Iterable[Plain]) -> Kind:
    """Several units in one column, money among them: all are decimals, since a double would spoil the money."""
    if "list" in units:
        return Kind.TEXT
    if units <= {"n"}:
        return Kind.WHOLE
    if "money" not in units:
        return Kind.REAL
    places = max((_places(cell) for cell in cells if isinstance(cell, Decimal)), default=0)
    return Kind.MONEY if places <= PLACES[Kind.MONEY] else Kind.FINE


def _places(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


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
        return to_arrow(self.each)

    def to_pandas(self) -> "pd.DataFrame":
        """A pandas frame: money is `ArrowDtype(decimal128)`, exact and summed exactly; `.astype(float)` to draw it."""
        return to_pandas(self.each)

    def to_polars(self) -> "pl.DataFrame":
        """A Polars frame: money is `Decimal`, exact."""
        return to_polars(self.each)

    def to_csv(self, file: "str | os.PathLike[str] | TextIO") -> None:
        """Into a path or an open text file; every digit as the API wrote it."""
        write_csv(self.each, file)
