"""Answers as rows: one per metric, store, dimensions and point, with what it rests on. A cell is one plain value."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
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
