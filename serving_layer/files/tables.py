"""Tables made from JSON responses: metrics, cells and alerts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from serving_layer.compare.calendar import TARGET
from serving_layer.query.resolve import Ranking, SplitBy, split_by
from views.core import View
from views.core.aggregates import Aggregate, CountDistinct, Histogram, Mean
from views.core.metric import Metric

Cell = str | int | bool | Decimal | None
"""As the JSON answer writes it. Numbers with a decimal point are `Decimal`, so that no digit is lost."""


class ColumnType(StrEnum):
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
    DATE = "date"
    """A local date."""


@dataclass(frozen=True)
class Table:
    """A table. `rows` have a cell per column, in order. `about`: what applies to the table as a whole."""

    columns: Mapping[str, ColumnType]
    rows: Sequence[tuple[Cell, ...]]
    about: Mapping[str, object]


Body = dict[str, Any]
PROVENANCE_COLUMNS: Mapping[str, ColumnType] = {
    "publication": ColumnType.WHOLE,
    "cut": ColumnType.INSTANT,
    "speed_as_of": ColumnType.INSTANT,
    "waiting_for_batch": ColumnType.WHOLE,
    "layers": ColumnType.TEXT,
    "missing": ColumnType.TEXT,
}
"""Provenance columns of each row: a file outlives the headers that it came with."""
SEPARATOR = ";"

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


def read(body: bytes) -> Body:
    """Decode a response body without losing a digit: numbers with a decimal point become Decimal."""
    found: Body = _decoder.decode(body)
    return found


def as_json(value: object) -> str:
    """Encode a part of a decoded body as JSON again."""
    return _encoder.encode(value).decode()


def joined(names: Sequence[str]) -> str | None:
    """Several names in one cell; None if there are none."""
    return SEPARATOR.join(names) or None


def provenance_cells(as_of: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells of `PROVENANCE_COLUMNS`."""
    provenance = {**as_of, "layers": joined(as_of["layers"]), "missing": joined(as_of.get("missing", ()))}
    return tuple(provenance[name] for name in PROVENANCE_COLUMNS)


CURRENCY = "currency"
CLOCK_GRAINS = ("15m", "hour")
DATE_GRAINS = ("day", "week", "month", "year", "total")
STORES = {"counted": ColumnType.WHOLE, "missing": ColumnType.WHOLE, "poor": ColumnType.WHOLE}
"""How many stores a series adds up, as columns such as `stores_missing`."""
WEEK_LABELS = {
    "hour_of_week": {"weekday": ColumnType.WHOLE, "hour": ColumnType.WHOLE, "hours_present": ColumnType.REAL},
    "weekday": {"weekday": ColumnType.WHOLE, "days_present": ColumnType.WHOLE},
}
"""Of the grains that add up weeks."""
SKU = "sku"
PRODUCT_LABELS = {"sku_title": "title", "sku_category": "category"}
"""Column to the field of a series that says what its SKU is."""


def metric_table(
    bodies: Sequence[Body], metrics: Sequence[Metric], by: Sequence[str], ranking: Ranking, about: Body
) -> Table:
    """The table of answers, a row per point. Its columns depend on the request alone.

    Args:
        bodies: one or several answers to one request.
        metrics: those of the answers.
        by: what series are split by: a series per store unless `total` is one of them.
        ranking: how series are ranked.
        about: the answer as a whole.
    """
    columns = _metric_columns(bodies, _kind_of(metrics), split_by(by), ranking)
    rows = [row for body in bodies for row in _metric_rows(body, columns)]
    return Table(columns, rows, {**about, "answers": [_without_points(body) for body in bodies]})


def _metric_columns(
    bodies: Sequence[Body], value: ColumnType, by: SplitBy, ranking: Ranking
) -> Mapping[str, ColumnType]:
    """In the order of the table. `by=currency`, the currency of the answer and of a series are one column."""
    text, flag, grains = ColumnType.TEXT, ColumnType.FLAG, {body["grain"] for body in bodies}
    stores = {f"group_{name}": text for name in by.groups} if by.merges_stores else {"store": text}
    columns = {"metric": text, **stores, **dict.fromkeys(by.dimensions, text)}
    columns |= dict.fromkeys(PRODUCT_LABELS, text) if SKU in by.dimensions else {}
    columns |= {"start": ColumnType.INSTANT}
    columns |= {"date": ColumnType.DATE} if not grains.isdisjoint(DATE_GRAINS) else {}
    columns |= {"local": text} if not grains.isdisjoint(CLOCK_GRAINS) else {}
    for grain in sorted(grains & WEEK_LABELS.keys()):
        columns |= WEEK_LABELS[grain]
    columns |= {"value": value, "final": flag, "flags": text}
    columns |= {"share": ColumnType.REAL} if ranking.share else {}
    columns |= {"other": flag} if ranking.top else {}
    if any("compare" in body for body in bodies):
        columns |= {"before": value, "change": ColumnType.REAL, "change_points": ColumnType.REAL, "before_flags": text}
        columns |= {"days_now": ColumnType.WHOLE, "days_before": ColumnType.WHOLE, "partial": flag}
    if any(body.get("compare") == TARGET for body in bodies):
        columns |= {"attainment": ColumnType.REAL}
    columns |= {f"stores_{name}": kind for name, kind in STORES.items()} if by.merges_stores else {}
    return {**columns, "unit": text, CURRENCY: text, "timezone": text, "grain": text, **PROVENANCE_COLUMNS}


def _kind_of(metrics: Sequence[Metric]) -> ColumnType:
    """The narrowest type that holds all values as JSON writes them. It depends on the metrics, never on the values."""
    kinds = {_kind(metric) for metric in metrics}
    if len(kinds) == 1:
        return kinds.pop()
    if ColumnType.TEXT in kinds:
        return ColumnType.TEXT
    return ColumnType.MIXED if ColumnType.REAL in kinds else ColumnType.MONEY


def _kind(metric: Metric) -> ColumnType:
    if metric.unit == "money":
        return ColumnType.MONEY if metric.formula.is_sum else ColumnType.REAL
    return {"n": ColumnType.WHOLE, "list": ColumnType.TEXT}.get(metric.unit, ColumnType.REAL)


def _metric_rows(body: Body, columns: Mapping[str, ColumnType]) -> Iterator[tuple[Cell, ...]]:
    of_answer = {"metric": body["metric"], "unit": body["unit"], "grain": body["grain"]}
    of_answer |= dict(zip(PROVENANCE_COLUMNS, provenance_cells(body["as_of"]), strict=True))
    for series in body["series"]:
        whose = {CURRENCY: series.get(CURRENCY, body.get(CURRENCY)), "store": series.get("store")}
        whose |= {"timezone": series["timezone"], **of_answer, **series["dimensions"]}
        whose |= {f"group_{name}": value for name, value in series.get("group", {}).items()}
        whose |= {column: series.get(field) for column, field in PRODUCT_LABELS.items()}
        whose["other"] = series.get("other", False)
        whose |= {f"stores_{name}": number for name, number in series.get("stores", {}).items()}
        of_series = [(name, whose.get(name)) for name in columns]
        for point in series["points"]:
            row = {**point, **_point_cells(body, point)}
            yield tuple(row.get(name, same) for name, same in of_series)


def _point_cells(body: Body, point: Mapping[str, Any]) -> dict[str, Cell]:
    """The parts of a point that are not yet single cells. Flags of the whole answer are repeated in each row."""
    cells: dict[str, Cell] = {"value": _list_as_json(point["value"])}
    cells["flags"] = joined([*body.get("flags", ()), *point.get("flags", ())])
    if "before" in point:
        cells |= {"before": _list_as_json(point["before"]), "before_flags": joined(point.get("before_flags", ()))}
        cells |= {f"days_{side}": number for side, number in point.get("days", {}).items()}
        cells["partial"] = "partial" in point
    return cells


def _list_as_json(value: Cell | list[object]) -> Cell:
    return as_json(value) if isinstance(value, list) else value


def _without_points(body: Body) -> Body:
    """Everything in an answer except its points, so that the table loses nothing."""
    series = [{name: part for name, part in each.items() if name != "points"} for each in body["series"]]
    return {**body, "series": series}


LAYERS = ("batch", "speed", "merged")
COMPOSITE: Mapping[type, Mapping[str, ColumnType]] = {
    CountDistinct: {"": ColumnType.TEXT},
    Histogram: {"counts": ColumnType.TEXT, "min": ColumnType.WHOLE, "max": ColumnType.WHOLE},
    Mean: {"sum": ColumnType.WHOLE, "n": ColumnType.WHOLE},
}
"""The parts of states that are more than one whole number; the counts of a histogram are a list as JSON text."""


def cells_table(body: Body, view: View) -> Table:
    """`body`: the answer of cells of that view. Money is in minor units, as there."""
    states = {name: parts for metric, of in view.metrics.items() for name, parts in _states(metric, of)}
    columns = {"view": ColumnType.TEXT, "store": ColumnType.TEXT} | dict.fromkeys(view.dimensions, ColumnType.TEXT)
    columns |= {"window": ColumnType.INSTANT}
    columns |= {f"{layer}_{name}": kind for layer in LAYERS for name, kind in states.items()}
    columns |= PROVENANCE_COLUMNS
    basis = dict(zip(PROVENANCE_COLUMNS, provenance_cells(body["as_of"]), strict=True))
    rows = [_cell_row(each, columns, {"view": body["view"], **basis}) for each in body["cells"]]
    return Table(columns, rows, {name: part for name, part in body.items() if name != "cells"})


def _states(metric: str, of: Aggregate) -> Iterator[tuple[str, ColumnType]]:
    for part, kind in COMPOSITE.get(type(of), {"": ColumnType.WHOLE}).items():
        yield (f"{metric}_{part}" if part else metric), kind


def _cell_row(cell: Body, columns: Mapping[str, ColumnType], of_answer: Mapping[str, Cell]) -> tuple[Cell, ...]:
    row = {**of_answer, "store": cell["store"], "window": cell["window"], **cell["dimensions"]}
    for layer in LAYERS:
        for name, state in (cell[layer] or {}).items():
            parts = {f"{name}_{part}": of for part, of in state.items()} if isinstance(state, dict) else {name: state}
            row |= {f"{layer}_{part}": _list_as_json(of) for part, of in parts.items()}
    return tuple(row.get(name) for name in columns)


ALERT_COLUMNS = {
    "alert_id": ColumnType.TEXT,
    "state": ColumnType.TEXT,
    "tenant": ColumnType.TEXT,
    "store": ColumnType.TEXT,
    "rule": ColumnType.TEXT,
    "version": ColumnType.WHOLE,
    "from": ColumnType.INSTANT,
    "to": ColumnType.INSTANT,
    "dimensions": ColumnType.TEXT,
    "value": ColumnType.MIXED,
    "threshold": ColumnType.MIXED,
    "baseline": ColumnType.MIXED,
    "sentence": ColumnType.TEXT,
    "provisional": ColumnType.FLAG,
    "late": ColumnType.FLAG,
    "raised_at": ColumnType.INSTANT,
    "resolved_at": ColumnType.INSTANT,
    "resolved_because": ColumnType.TEXT,
    "retracted_at": ColumnType.INSTANT,
    "retracted_because": ColumnType.TEXT,
}
ALERT_LIST_COLUMNS = {"alerts_as_of": ColumnType.INSTANT, "complete_from": ColumnType.INSTANT}


def alerts_table(body: Body) -> Table:
    """`body`: the answer of `/v1/alerts`."""
    columns = {**ALERT_COLUMNS, **ALERT_LIST_COLUMNS}
    rows: list[tuple[Cell, ...]] = []
    for each in body["alerts"]:
        said = {
            **each,
            **each["window"],
            "dimensions": as_json(each["dimensions"]),
            **{n: body[n] for n in ALERT_LIST_COLUMNS},
        }
        rows.append(tuple(said[name] for name in columns))
    return Table(columns, rows, {name: part for name, part in body.items() if name != "alerts"})
