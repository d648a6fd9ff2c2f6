"""Compares the cells of a store's days before and after a publication, in Spark's workers or for a small ledger here.

The worker has the events that may explain a change next to the cells. Cells of two definitions of a view share only the
names of dimensions and states, so they are compared by name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import orjson
import pyarrow as pa

from batch_layer.ledger.correction import EVENTS_NAMED, INSERT_BLOCK, Correction, summed, written
from batch_layer.ledger.explaining import Contribution, cause_of
from batch_layer.run import read_blocks, write_rows
from batch_layer.speed_span import SpeedPartition, SpeedSpan
from views.control.recompute import Cause
from views.core.aggregates import Column, Value
from views.core.cells import WINDOW_KEY, CellKey, States, read_block
from views.core.cut import instant, month_of
from views.core.large_blocks import lines_in_parts
from views.core.sketch import sketch_of
from views.core.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session


class NamedKey(NamedTuple):
    """The window's start, and (name, text) of each dimension."""

    window: int
    dimensions: tuple[tuple[str, str | None], ...]


NamedCells = dict[NamedKey, dict[str, Value]]
_SUM = Column("", "sum")


def add_block(cells: NamedCells, view: View, block: str | bytes) -> None:
    """Add the cells of a block, which may have been written for an older definition than `view`.

    Text columns are dimensions; a state that the view no longer has is treated as a sum.
    """
    columns: Mapping[str, list[Value | str]] = orjson.loads(block)
    windows = columns[WINDOW_KEY]
    names = [name for name in columns if name != WINDOW_KEY]
    texts = [
        name for name in names if name not in view.columns and (name in view.dimensions or _is_text(columns[name]))
    ]
    numbers = [name for name in names if name not in texts]
    for at, window in enumerate(windows):
        key = NamedKey(int(window or 0), tuple(sorted((name, _text(columns[name][at])) for name in texts)))
        own = cells.setdefault(key, {})
        for name in numbers:
            value = _number(columns[name][at])
            own[name] = view.columns.get(name, _SUM).merge(own[name], value) if name in own else value


def _is_text(values: Iterable[Value | str]) -> bool:
    return any(isinstance(value, str) for value in values)


def _text(value: Value | str) -> str | None:
    return None if value is None else str(value)


def _number(value: Value | str) -> Value:
    return value if value is None or isinstance(value, str) else int(value)


COMPARED = pa.schema([("store", pa.string()), ("month", pa.date32()), ("totals", pa.string()), ("open", pa.bool_())])
"""A row per unit. `totals`: `Summed` as JSON. `open`: whether something in it is unexplained."""
Cells = dict[CellKey, States]
Unit = Mapping[str, Any]
"""A row of `UNITS`."""


@dataclass(frozen=True)
class CellEvents:
    """What may explain the changes of one cell, by kind: see `batch_layer.ledger.events`."""

    waited: Sequence[Contribution] = ()
    miskeyed: Sequence[Contribution] = ()
    others: Sequence[Contribution] = ()
    replaced: Sequence[Contribution] = ()


@dataclass(frozen=True)
class LedgerComparer:
    """`before`, `after`: day to run. `shown`, `kept`: speed rows shown before, and after.

    `stamp`: the write timestamp of the lines, so that those of a second comparison replace those of the first.
    """

    connect: "Callable[[], Session]"
    subject: str
    view: View
    before: Mapping[date, str]
    after: Mapping[date, str]
    shown: SpeedSpan
    kept: SpeedSpan
    fixed: Cause | None
    stamp: int

    def __call__(self, units: pa.Table, events: pa.Table | None) -> pa.Table:
        """Of units `UNITS` of one store and month, and the events that contribute to them: write and add up lines."""
        compared = self.compare([(unit, events) for unit in units.to_pylist()])
        return pa.Table.from_pylist(compared, schema=COMPARED)

    def compare(self, units: Sequence[tuple[Unit, pa.Table | None]]) -> list[dict[str, Any]]:
        """Compare units, each beside the events that contribute to it. What they need is read together.

        Returns:
            Rows of `COMPARED`, in order. Lines are written.
        """
        listed = [unit for unit, _ in units]
        shown, corrected = self._blocks(listed, self.before, self.shown), self._blocks(listed, self.after, self.kept)
        found, inserts = [], list[tuple[Any, ...]]()
        for (unit, events), *pair in zip(units, shown, corrected, strict=True):
            by_day: dict[date, list[Correction]] = {}
            for line in self._named(pair) if self.fixed else self._explained(pair, events):
                day = instant(line.window).date()
                if day in unit["days"]:
                    by_day.setdefault(day, []).append(line)
            key = (self.subject, self.view.name, unit["store"])
            inserts += [
                (*key, kept_under, written(lines), self.stamp)
                for day, own in sorted(by_day.items())
                for kept_under, lines in lines_in_parts(day, own, lambda line: len(written([line])))
            ]
            sums = summed(line for own in by_day.values() for line in own)
            row = {"store": unit["store"], "month": unit["month"], "totals": msgspec.json.encode(sums).decode()}
            found.append(row | {"open": "unexplained" in sums})
        session = self.connect()
        insert = session.prepare(INSERT_BLOCK)
        write_rows(session, ((insert.bind(values), len(values[-2])) for values in inserts))
        return found

    def _explained(self, pair: Sequence[Sequence[str]], events: pa.Table | None) -> Iterator[Correction]:
        explaining = _by_cell(events, self.view) if events is not None else {}
        columns = tuple(self.view.columns.values())
        shown, corrected = (self._cells(blocks) for blocks in pair)
        for key in sorted(shown.keys() | corrected.keys(), key=_order):
            own = explaining.get(key, CellEvents())
            cause = cause_of(columns, (shown.get(key), corrected.get(key)), own.waited, own.miskeyed, own.replaced)
            if cause is not None:
                named = {"waited": own.waited, "miskeyed": own.miskeyed}.get(cause, (*own.waited, *own.others))
                dimensions = dict(zip(self.view.dimensions, key.dimensions, strict=True))
                states = [_by_name(self.view, each.get(key)) for each in (shown, corrected)]
                yield from _lines_of(key.window, dimensions, states, cause, [each.identity for each in named])

    def _named(self, pair: Sequence[Sequence[str]]) -> Iterator[Correction]:
        assert self.fixed is not None  # noqa: S101 - for the type checker
        shown, corrected = NamedCells(), NamedCells()
        for cells, blocks in zip((shown, corrected), pair, strict=True):
            for block in blocks:
                add_block(cells, self.view, block)
        for key in sorted(shown.keys() | corrected.keys(), key=_named_order):
            states = [shown.get(key, {}), corrected.get(key, {})]
            yield from _lines_of(key.window, dict(key.dimensions), states, self.fixed, ())

    def _cells(self, blocks: Sequence[str]) -> Cells:
        cells: Cells = {}
        for block in blocks:
            for key, states in read_block(self.view, block):
                cells[key] = self.view.merge(cells[key], states) if key in cells else states
        return cells

    def _blocks(self, units: Sequence[Unit], runs: Mapping[date, str], span: SpeedSpan) -> list[list[str]]:
        """Of each unit: the published blocks of its days, and what speed shows of them."""
        found: list[list[str]] = [[] for _ in units]
        session, name = self.connect(), self.view.name
        places = [(at, unit["store"], day) for at, unit in enumerate(units) for day in unit["days"] if day in runs]
        keys = [(name, store, month_of(day), runs[day], day) for _, store, day in places]
        for (at, *_), block in zip(places, read_blocks(session, keys), strict=True):
            if block is not None:
                found[at].append(block)
        partitions = [
            (at, SpeedPartition(name, unit["store"], received))
            for at, unit in enumerate(units)
            for received in unit["received"]
        ]
        for (at, _), blocks in zip(partitions, span.blocks([each for _, each in partitions]), strict=True):
            found[at] += blocks
        return found


def _lines_of(
    window: int,
    dimensions: Mapping[str, str | None],
    pair: Sequence[Mapping[str, Value]],
    cause: Cause,
    identities: Sequence[str],
) -> Iterator[Correction]:
    shown, corrected = pair
    for state in dict.fromkeys((*shown, *corrected)):
        one, other = shown.get(state), corrected.get(state)
        if one != other:
            events = sorted(set(identities))
            yield Correction(window, dimensions, state, one, other, cause, events[:EVENTS_NAMED], len(events))


def _by_cell(events: pa.Table, view: View) -> dict[CellKey, CellEvents]:
    dimensions, columns = len(view.dimensions), len(view.columns)
    sketched = [at for at, column in enumerate(view.columns.values()) if column.by == "union"]
    found: dict[CellKey, dict[str, list[Contribution]]] = {}
    names = [
        "kind",
        "identity",
        "window",
        *(f"d{at}" for at in range(dimensions)),
        *(f"s{at}" for at in range(columns)),
    ]
    for kind, identity, window, *rest in zip(*(events[name].to_pylist() for name in names), strict=True):
        key = CellKey(window, tuple(rest[:dimensions]))
        own = found.setdefault(key, {"waited": [], "miskeyed": [], "others": [], "replaced": []})
        states = rest[dimensions:]
        for at in sketched:
            states[at] = sketch_of([states[at]])
        own[kind].append(Contribution(identity, tuple(states)))
    return {key: CellEvents(**own) for key, own in found.items()}


def _by_name(view: View, states: States | None) -> dict[str, Value]:
    return {} if states is None else dict(zip(view.columns, states, strict=True))


def _order(key: CellKey) -> tuple[int, tuple[str, ...]]:
    return key.window, tuple(text or "" for text in key.dimensions)


def _named_order(key: NamedKey) -> tuple[int, tuple[tuple[str, str], ...]]:
    return key.window, tuple((name, text or "") for name, text in key.dimensions)
