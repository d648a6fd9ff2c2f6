"""Files of targets: CSV with a header, or JSON Lines, with store, day, metric and value."""

import re
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from master_dataset.errors import BadFileError
from master_dataset.registry.file_rows import FileRows, plain_date
from master_dataset.registry.targets import DIGITS, MOST_TARGETS

MOST = 10**12
"""The greatest absolute value of a target."""
_ROWS = FileRows("targets", ("store", "day", "metric", "value"), ("store", "day", "metric", "value"))
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,9})?")
_SHOWN = 100
"""Characters of a wrong value that an error repeats."""

Loaded = dict[str, dict[str, dict[date, int]]]
"""By store, metric and day; see `targets.Targets`."""


def read_targets(file: Path, stores: Mapping[str, int], metrics: Mapping[str, int | None]) -> Loaded:
    """Read a file of targets.

    Args:
        file: UTF-8. It is JSON Lines if it begins with `{`, and else CSV.
        stores: The stores of the tenant, each with the decimals of its currency.
        metrics: The metrics that may have targets, each with the decimals of a value; None: those of the currency.

    Raises:
        BadFileError: The file cannot be read or is wrong; it names the line and the field.
    """
    with _ROWS.opened(file) as stream:
        return read_stream(stream, stores, metrics)


def read_stream(stream: IO[bytes], stores: Mapping[str, int], metrics: Mapping[str, int | None]) -> Loaded:
    """Read targets as `read_targets` does. Raises BadFileError."""
    found: Loaded = {}
    lines: dict[tuple[str, str, date], int] = {}
    for number, fields in _ROWS.read(stream):
        for name in fields:
            if name not in _ROWS.columns:
                raise _ROWS.unknown_field(number, "field", name[:_SHOWN])
        store, metric, day = _store(number, fields, stores), _metric(number, fields, metrics), _day(number, fields)
        decimals = metrics[metric]
        value = _value(number, fields, stores[store] if decimals is None else decimals)
        first = lines.setdefault((store, metric, day), number)
        if first != number:
            message = f"Lines {first} and {number} are both the target of store `{store}` for `{metric}` on {day}."
            raise _ROWS.error(message, "duplicate_target")
        if len(lines) > MOST_TARGETS:
            raise _ROWS.error(f"There are more than {MOST_TARGETS:,} targets.", "too_many_targets")
        found.setdefault(store, {}).setdefault(metric, {})[day] = value
    return found


def _wrong(number: int, name: str, why: str, code: str) -> BadFileError:
    return _ROWS.error(f"`{name}` of line {number} {why}.", code)


def _text(number: int, fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        raise _wrong(number, name, "is missing", "missing_field")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(number, name, "must be a text", "wrong_type")
    return str(value).strip()


def _store(number: int, fields: dict[str, Any], stores: Collection[str]) -> str:
    store = _text(number, fields, "store")
    if store not in stores:
        raise _wrong(number, "store", f"is no store of the tenant: `{store[:_SHOWN]}`", "unknown_store")
    return store


def _metric(number: int, fields: dict[str, Any], metrics: Collection[str]) -> str:
    metric = _text(number, fields, "metric")
    if metric not in metrics:
        why = f"cannot have targets: `{metric[:_SHOWN]}`; those that can are {', '.join(sorted(metrics))}"
        raise _wrong(number, "metric", why, "unknown_metric")
    return metric


def _day(number: int, fields: dict[str, Any]) -> date:
    text = _text(number, fields, "day")
    try:
        return plain_date(text)
    except ValueError:
        raise _wrong(number, "day", f"is no day: `{text[:_SHOWN]}`; one is `2026-05-01`", "bad_time") from None


def _value(number: int, fields: dict[str, Any], decimals: int) -> int:
    value = fields.get("value")
    if isinstance(value, float):  # JSON: the shortest text of the double is what was written
        value = repr(value)
    text = _text(number, fields | {"value": value}, "value")
    if not _NUMBER.fullmatch(text):
        raise _wrong(number, "value", f"is no number: `{text[:_SHOWN]}`", "bad_number")
    exact = Decimal(text)
    if exact.copy_abs() > MOST:
        raise _wrong(number, "value", f"is beyond {MOST:,}", "out_of_range")
    rounded = exact.quantize(Decimal(1).scaleb(-decimals))
    if rounded != exact:
        most = f"has more than {decimals} decimals" if decimals else "must be whole"
        raise _wrong(number, "value", f"{most}: `{text[:_SHOWN]}`", "bad_number")
    return int(rounded.scaleb(DIGITS))
