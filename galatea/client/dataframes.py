"""Answers about metrics as rows, Arrow tables, pandas and Polars frames, and CSV.

All have the tidy long form: one row per metric, store, dimensions and point, and columns that say which data it was
computed from. pyarrow, pandas and Polars are imported when their tables are asked for, and only then have to be
installed.
"""

import csv
import os
import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from galatea.client.answers import Answer, ListItem, Point, Series, Value

Plain = str | int | bool | Decimal | datetime | date | None
"""What a row can hold."""
Row = dict[str, Plain]


class Tabular:
    """An answer that converts to rows, tables and files.

    Columns: `metric`, `store`, `group_<name>` where stores are grouped, the dimensions, `sku_title` and `sku_category`
    with `by=sku`, `start`, `value`, `final`,
    `flags`, the comparison if one was asked for, `unit`, `currency`, `timezone`, `grain`, and the fields of `as_of`.
    Several flags or layers are joined by `;`. `value` is None (null, an empty cell) where it cannot be known.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def each(self) -> Sequence["Answer"]:
        """The answers, one per metric."""

    def to_rows(self) -> list[Row]:
        """Convert to a list of dicts, which needs no other library.

        Returns:
            One dict per point, all with the same keys in the same order. Numbers are as the API wrote them; a value
            that is a list of items is JSON text.
        """
        columns = _columns(self.each)
        return [{name: row.get(name) for name in columns} for answer in self.each for row in _rows(answer)]

    def to_arrow(self) -> "pa.Table":
        """Convert to a pyarrow table.

        Returns:
            Money is `decimal128(38, 4)`, with 18 decimal places if a mean has more than 4; counts are `int64`, ratios
            `float64`, lists of items JSON text. Several metrics share the column `value`: if one of them is money, all
            are decimals.

        Raises:
            ImportError: pyarrow is not installed.
        """
        with _required("pyarrow"):
            import pyarrow as pa  # noqa: PLC0415 - optional dependency
        types = {
            Kind.TEXT: pa.string(),
            Kind.INTEGER: pa.int64(),
            Kind.FLOAT: pa.float64(),
            Kind.BOOLEAN: pa.bool_(),
            Kind.INSTANT: pa.timestamp("us", "UTC"),
            Kind.DATE: pa.date32(),
            **{kind: pa.decimal128(DECIMAL_DIGITS, places) for kind, places in DECIMAL_PLACES.items()},
        }
        rows, units = self.to_rows(), {answer.unit for answer in self.each}
        columns = {}
        for name in _columns(self.each):
            kind = _kind(name, units, [row[name] for row in rows])
            columns[name] = pa.array([_converted(row[name], kind) for row in rows], types[kind])
        return pa.table(columns)

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a pandas frame.

        Returns:
            Money is `ArrowDtype(decimal128)`, so sums are exact; use `.astype(float)` for charts. Counts are `Int64`,
            because they can be missing. Ratios are `float64`.

        Raises:
            ImportError: pandas or pyarrow is not installed.
        """
        with _required("pandas"):
            import pandas as pd  # noqa: PLC0415 - optional dependency
        table = self.to_arrow()
        integers = {field.type: pd.Int64Dtype() for field in table.schema if str(field.type) == "int64"}
        decimals = {
            field.type: pd.ArrowDtype(field.type) for field in table.schema if str(field.type).startswith("decimal")
        }
        frame: pd.DataFrame = table.to_pandas(types_mapper={**integers, **decimals}.get)
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Convert to a Polars frame.

        Returns:
            Money is `Decimal`, so sums are exact; counts are `Int64`, ratios `Float64`.

        Raises:
            ImportError: Polars or pyarrow is not installed.
        """
        with _required("polars"):
            import polars as pl  # noqa: PLC0415 - optional dependency
        return pl.DataFrame(self.to_arrow())

    def to_csv(self, file: "str | os.PathLike[str] | TextIO") -> None:
        """Write CSV (RFC 4180) with a header, the same as the API with `format=csv`.

        Args:
            file: a path, which is overwritten as UTF-8, or a file that is open for text.

        Raises:
            OSError: the file cannot be written.
        """
        if isinstance(file, str | os.PathLike):
            with Path(file).open("w", encoding="utf-8", newline="") as opened:
                self.to_csv(opened)
            return
        writer = csv.writer(file)
        writer.writerow(_columns(self.each))
        writer.writerows([_csv_text(cell) for cell in row.values()] for row in self.to_rows())

    def to_parquet(self, file: "str | os.PathLike[str]") -> None:
        """Write a Parquet file with the columns of `to_arrow`.

        Args:
            file: a path, which is overwritten.

        Raises:
            ImportError: pyarrow is not installed.
            OSError: the file cannot be written.
        """
        from pyarrow.parquet import write_table  # noqa: PLC0415 - loaded only if it is used

        write_table(self.to_arrow(), file, compression="zstd")


# Rows

WEEK_COLUMNS = {"hour_of_week": ("weekday", "hour", "hours_present"), "weekday": ("weekday", "days_present")}
CLOCK_GRAINS = frozenset({"15m", "hour"})
TARGET = "target"
COMPARISON_COLUMNS = ("before", "change", "change_points", "before_flags", "days_now", "days_before", "partial")
STORE_COLUMNS = ("stores_counted", "stores_missing", "stores_poor")
AS_OF_COLUMNS = ("publication", "cut", "speed_as_of", "waiting_for_batch", "layers", "missing")
_JSON = msgspec.json.Encoder(decimal_format="number")


def _columns(answers: Sequence["Answer"]) -> list[str]:
    """The columns in order. `by=currency` and the currency of an answer are one column."""
    dimensions = [name for answer in answers for series in answer.series for name in series.dimensions]
    of_week = [name for answer in answers for name in WEEK_COLUMNS.get(answer.grain, ())]
    comparison = list(COMPARISON_COLUMNS) if any(answer.compare for answer in answers) else []
    comparison += ["attainment"] if any(answer.compare == TARGET for answer in answers) else []
    grains = {answer.grain for answer in answers}
    local = ["date"] if grains - CLOCK_GRAINS - WEEK_COLUMNS.keys() else []
    local += ["local"] if grains & CLOCK_GRAINS else []
    every = [series for answer in answers for series in answer.series]
    groups = [f"group_{name}" for series in every for name in series.group or {}]
    counts = list(STORE_COLUMNS) if any(series.stores for series in every) else []
    share = ["share"] if any(point.share is not None for series in every for point in series.points) else []
    other = ["other"] if any(series.other for series in every) else []
    labels = ["sku_title", "sku_category"] if "sku" in dimensions else []
    series_columns = ["store", *groups, *dimensions, *labels, *other, *counts]
    columns = [
        "metric",
        *series_columns,
        "start",
        *local,
        *of_week,
        "value",
        *share,
        "final",
        "flags",
        *comparison,
    ]
    return list(dict.fromkeys([*columns, "unit", "currency", "timezone", "grain", *AS_OF_COLUMNS]))


def _rows(answer: "Answer") -> Iterator[Row]:
    as_of = answer.as_of
    of_answer: Row = {
        "metric": answer.metric,
        "unit": answer.unit,
        "currency": answer.currency,
        "grain": answer.grain,
        "publication": as_of.publication,
        "cut": as_of.cut,
        "speed_as_of": as_of.speed_as_of,
        "waiting_for_batch": as_of.waiting_for_batch,
        "layers": _joined(as_of.layers),
        "missing": _joined(as_of.missing),
    }
    for series in answer.series:
        of_series = of_answer | _series_columns(series)
        for point in series.points:
            yield of_series | _point_columns(answer, point)


def _series_columns(series: "Series") -> Row:
    groups = {f"group_{name}": value for name, value in (series.group or {}).items()}
    counts = (series.stores.counted, series.stores.missing, series.stores.poor) if series.stores else (None,) * 3
    currency = {"currency": series.currency} if series.currency else {}
    return {
        "store": series.store,
        "timezone": series.timezone,
        "other": series.other,
        "sku_title": series.title,
        "sku_category": series.category,
        **groups,
        **series.dimensions,
        **currency,
        **dict(zip(STORE_COLUMNS, counts, strict=True)),
    }


def _point_columns(answer: "Answer", point: "Point") -> Row:
    """The flags of the answer are repeated on each row, because rows get separated from their answer."""
    return {
        "start": point.start,
        "date": point.local_date,
        "local": point.local,
        "value": _plain(point.value),
        "share": point.share,
        "final": point.final,
        "flags": _joined([*answer.flags, *point.flags]),
        "before": _plain(point.before),
        "change": point.change,
        "change_points": point.change_points,
        "attainment": point.attainment,
        "before_flags": _joined(point.before_flags),
        "days_now": point.days.now if point.days else None,
        "days_before": point.days.before if point.days else None,
        "partial": point.partial,
        "weekday": point.weekday,
        "hour": point.hour,
        "hours_present": point.hours_present,
        "days_present": point.days_present,
    }


def _plain(value: "Value") -> int | Decimal | str | None:
    """A list of items becomes JSON text, as the API wrote it."""
    return _JSON.encode([_item_fields(item) for item in value]).decode() if isinstance(value, tuple) else value


def _item_fields(item: "ListItem") -> dict[str, object]:
    bounds = {} if item.start is None else {"from": item.start, "to": item.end}
    others = {name: getattr(item, name) for name in ("weekday", "hour", "count", "share")}
    return bounds | {name: value for name, value in others.items() if value is not None}


def _joined(texts: Iterable[str]) -> str | None:
    return ";".join(texts) or None


# CSV

FORMULA = re.compile(
    r"^(?=[^\S\t\r\n]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])"
    r"|[;|\t\r\n](?:[^\S\t\r\n]|\")*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
"""Where spreadsheets take a text, or what follows a separator in it, for a formula; the same as in the API."""


def without_formula(text: str) -> str:
    """A text of CSV, with a quote wherever a spreadsheet would take what follows for a formula."""
    return FORMULA.sub(r"\g<0>'", text)


def _csv_text(cell: Plain) -> str:
    """Numbers such as `-5.00` stay as they are."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        return without_formula(cell)
    if isinstance(cell, datetime):
        spec = "milliseconds" if cell.microsecond else "seconds"
        return cell.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=spec) + "Z"
    if isinstance(cell, Decimal):
        return f"{cell:f}"  # without an exponent
    return "" if cell is None else str(cell)


# Column types

INTEGER_COLUMNS = frozenset(
    {
        "weekday",
        "hour",
        "days_present",
        "days_now",
        "days_before",
        "publication",
        "waiting_for_batch",
        *STORE_COLUMNS,
    }
)
INSTANT_COLUMNS = frozenset({"start", "cut", "speed_as_of"})
FLOAT_COLUMNS = frozenset({"change", "change_points", "attainment", "hours_present", "share"})
BOOLEAN_COLUMNS = frozenset({"final", "partial", "other"})
VALUE_COLUMNS = frozenset({"value", "before"})
DECIMAL_DIGITS = 38
"""The most that Arrow's decimal128 has."""


class Kind(StrEnum):
    """The type of a column. MONEY has room for every currency of ISO 4217, MEAN_MONEY for means of money."""

    TEXT = "text"
    INTEGER = "integer"
    MONEY = "money"
    MEAN_MONEY = "mean_money"
    FLOAT = "float"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    DATE = "date"


DECIMAL_PLACES = {Kind.MONEY: 4, Kind.MEAN_MONEY: 18}


def _kind(column: str, units: Collection[str], cells: Iterable[Plain]) -> Kind:
    if column in VALUE_COLUMNS:
        return _value_kind(set(units), cells)
    columns_of = {
        Kind.INSTANT: INSTANT_COLUMNS,
        Kind.DATE: ("date",),
        Kind.BOOLEAN: BOOLEAN_COLUMNS,
        Kind.FLOAT: FLOAT_COLUMNS,
        Kind.INTEGER: INTEGER_COLUMNS,
    }
    return next((kind for kind, names in columns_of.items() if column in names), Kind.TEXT)


def _value_kind(units: set[str], cells: Iterable[Plain]) -> Kind:
    """If one of several units is money, the whole column is decimal, because a float would lose cents."""
    if "list" in units:
        return Kind.TEXT
    if units <= {"n"}:
        return Kind.INTEGER
    if "money" not in units:
        return Kind.FLOAT
    places = max((_decimal_places(cell) for cell in cells if isinstance(cell, Decimal)), default=0)
    return Kind.MONEY if places <= DECIMAL_PLACES[Kind.MONEY] else Kind.MEAN_MONEY


def _decimal_places(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _converted(cell: Plain, kind: Kind) -> object:
    """A cell as a column of that kind holds it; None stays None."""
    if not isinstance(cell, int | Decimal) or isinstance(cell, bool):
        return cell
    if kind in DECIMAL_PLACES:
        with localcontext(prec=DECIMAL_DIGITS):  # exact: a mean is a double, with fewer digits
            return round(Decimal(cell), DECIMAL_PLACES[kind])
    if kind is Kind.TEXT:
        return str(cell)
    return float(cell) if kind is Kind.FLOAT else cell


@contextmanager
def _required(library: str) -> Iterator[None]:
    """An ImportError that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        message = f"`{library}` is not installed, and this table is made with it: pip install {library}"
        raise ImportError(message, name=library) from error
