"""Metrics over time as a table: a row per metric, store, dimensions and point."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from serving_layer.files.body import BASIS, Body, as_json, basis_of, joined
from serving_layer.files.table import Cell, Kind, Table
from views.core.metric import Metric

CURRENCY = "currency"
LABELS = {"weekday": Kind.WHOLE, "hour": Kind.WHOLE, "hours_present": Kind.REAL}
"""Of the grain `hour_of_week`."""


def metric_table(bodies: Sequence[Body], metrics: Sequence[Metric], by: Sequence[str], about: Body) -> Table:
    """`bodies`: one or several answers to one question, of `metrics`, split `by`. `about`: the answer as a whole."""
    columns = _columns(bodies, _kind_of(metrics), by)
    rows = [row for body in bodies for row in _rows(body, columns)]
    return Table(columns, rows, {**about, "answers": [_without_points(body) for body in bodies]})


def _columns(bodies: Sequence[Body], value: Kind, by: Sequence[str]) -> Mapping[str, Kind]:
    """In the order of the table. `by=currency` and the currency of the answer are one column."""
    text, flag = Kind.TEXT, Kind.FLAG
    columns = {"metric": text, "store": text, **dict.fromkeys(by, text), "start": Kind.INSTANT}
    if any(body["grain"] == "hour_of_week" for body in bodies):
        columns |= LABELS
    columns |= {"value": value, "final": flag, "flags": text}
    if any("compare" in body for body in bodies):
        columns |= {"before": value, "change": Kind.REAL, "change_points": Kind.REAL, "before_flags": text}
        columns |= {"days_now": Kind.WHOLE, "days_before": Kind.WHOLE, "partial": flag}
    return {**columns, "unit": text, CURRENCY: text, "timezone": text, "grain": text, **BASIS}


def _kind_of(metrics: Sequence[Metric]) -> Kind:
    """The narrowest kind that holds every value as JSON writes it: by what was asked, never by what was found."""
    kinds = {_kind(metric) for metric in metrics}
    if len(kinds) == 1:
        return kinds.pop()
    if Kind.TEXT in kinds:
        return Kind.TEXT
    return Kind.MIXED if Kind.REAL in kinds else Kind.MONEY


def _kind(metric: Metric) -> Kind:
    if metric.unit == "money":
        return Kind.MONEY if metric.formula.is_sum else Kind.REAL
    return {"n": Kind.WHOLE, "list": Kind.TEXT}.get(metric.unit, Kind.REAL)


def _rows(body: Body, columns: Mapping[str, Kind]) -> Iterator[tuple[Cell, ...]]:
    of_answer = {"metric": body["metric"], "unit": body["unit"], "grain": body["grain"]}
    of_answer |= dict(zip(BASIS, basis_of(body["as_of"]), strict=True))
    for series in body["series"]:
        whose = {CURRENCY: body.get(CURRENCY), "store": series["store"], "timezone": series["timezone"]}
        whose |= of_answer | series["dimensions"]
        of_series = [(name, whose.get(name)) for name in columns]
        for point in series["points"]:
            row = {**point, **_told(body, point)}
            yield tuple(row.get(name, same) for name, same in of_series)


def _told(body: Body, point: Mapping[str, Any]) -> dict[str, Cell]:
    """The parts of a point that are no single cell yet. What holds for the whole answer is a flag of each row."""
    told: dict[str, Cell] = {"value": _listed(point["value"])}
    told["flags"] = joined([*body.get("flags", ()), *point.get("flags", ())])
    if "before" in point:
        told |= {"before": _listed(point["before"]), "before_flags": joined(point.get("before_flags", ()))}
        told |= {f"days_{side}": number for side, number in point.get("days", {}).items()}
        told["partial"] = "partial" in point
    return told


def _listed(value: Decimal | int | list[object] | None) -> Cell:
    return as_json(value) if isinstance(value, list) else value


def _without_points(body: Body) -> Body:
    """All that an answer says beside its points, so that the table loses nothing of it."""
    series = [{name: part for name, part in each.items() if name != "points"} for each in body["series"]]
    return {**body, "series": series}
