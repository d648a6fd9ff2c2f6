"""The cells of a view as a table: a row per cell, with the states of each layer side by side.

Layers are columns and not rows: of a sum over rows every event counts once.
"""

from collections.abc import Iterator, Mapping

from serving_layer.files.body import BASIS, Body, as_json, basis_of
from serving_layer.files.table import Cell, Kind, Table
from views.core import View
from views.core.aggregates import Aggregate, CountDistinct, Histogram, Mean

LAYERS = ("batch", "speed", "merged")
COMPOSITE: Mapping[type, Mapping[str, Kind]] = {
    CountDistinct: {"": Kind.TEXT},
    Histogram: {"counts": Kind.TEXT, "min": Kind.WHOLE, "max": Kind.WHOLE},
    Mean: {"sum": Kind.WHOLE, "n": Kind.WHOLE},
}
"""The parts of states that are more than one whole number; the counts of a histogram are a list as JSON text."""


def cells_table(body: Body, view: View) -> Table:
    """`body`: the answer of cells of that view. Money is in minor units, as there."""
    states = {name: parts for metric, of in view.metrics.items() for name, parts in _states(metric, of)}
    columns = {"view": Kind.TEXT, "store": Kind.TEXT} | dict.fromkeys(view.dimensions, Kind.TEXT)
    columns |= {"window": Kind.INSTANT}
    columns |= {f"{layer}_{name}": kind for layer in LAYERS for name, kind in states.items()}
    columns |= BASIS
    basis = dict(zip(BASIS, basis_of(body["as_of"]), strict=True))
    rows = [_row(each, columns, {"view": body["view"], **basis}) for each in body["cells"]]
    return Table(columns, rows, {name: part for name, part in body.items() if name != "cells"})


def _states(metric: str, of: Aggregate) -> Iterator[tuple[str, Kind]]:
    for part, kind in COMPOSITE.get(type(of), {"": Kind.WHOLE}).items():
        yield (f"{metric}_{part}" if part else metric), kind


def _row(cell: Body, columns: Mapping[str, Kind], of_answer: Mapping[str, Cell]) -> tuple[Cell, ...]:
    row = {**of_answer, "store": cell["store"], "window": cell["window"], **cell["dimensions"]}
    for layer in LAYERS:
        for name, state in (cell[layer] or {}).items():
            parts = {f"{name}_{part}": of for part, of in state.items()} if isinstance(state, dict) else {name: state}
            row |= {f"{layer}_{part}": _listed(of) for part, of in parts.items()}
    return tuple(row.get(name) for name in columns)


def _listed(value: object) -> object:
    return as_json(value) if isinstance(value, list) else value
