"""Alerts as a table: a row per alert, with what followed it."""

from serving_layer.files.body import Body, as_json
from serving_layer.files.table import Cell, Kind, Table

COLUMNS = {
    "alert_id": Kind.TEXT,
    "state": Kind.TEXT,
    "tenant": Kind.TEXT,
    "store": Kind.TEXT,
    "rule": Kind.TEXT,
    "version": Kind.WHOLE,
    "from": Kind.INSTANT,
    "to": Kind.INSTANT,
    "dimensions": Kind.TEXT,
    "value": Kind.MIXED,
    "threshold": Kind.MIXED,
    "baseline": Kind.MIXED,
    "sentence": Kind.TEXT,
    "provisional": Kind.FLAG,
    "late": Kind.FLAG,
    "raised_at": Kind.INSTANT,
    "resolved_at": Kind.INSTANT,
    "resolved_because": Kind.TEXT,
    "retracted_at": Kind.INSTANT,
    "retracted_because": Kind.TEXT,
}
OF_ALL = {"alerts_as_of": Kind.INSTANT, "complete_from": Kind.INSTANT}


def alerts_table(body: Body) -> Table:
    """`body`: the answer of `/v1/alerts`."""
    columns = {**COLUMNS, **OF_ALL}
    rows: list[tuple[Cell, ...]] = []
    for each in body["alerts"]:
        said = {**each, **each["window"], "dimensions": as_json(each["dimensions"]), **{n: body[n] for n in OF_ALL}}
        rows.append(tuple(said[name] for name in columns))
    return Table(columns, rows, {name: part for name, part in body.items() if name != "alerts"})
