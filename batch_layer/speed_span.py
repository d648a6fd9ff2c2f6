"""The speed rows between two instants of receipt.

A verification lists their partitions, and Spark's workers read them. A ledger reads them itself, or in the workers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa
from cassandra.concurrent import execute_concurrent_with_args

from views.control.speed_layout import SpeedLayout, layout_of
from views.core.cells import WAITING, WINDOW_KEY, Addition, Shape, number_of, read_block
from views.core.cut import instant, utc
from views.registry import registered_views

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

STORE_DAYS = pa.schema(
    [
        ("view", pa.string()),
        ("store", pa.string()),
        ("received_day", pa.date32()),
        ("day", pa.date32()),
        ("waiting", pa.int64()),
    ]
)
"""A UTC day of windows that a partition has cells of; or no day, and how many events of it wait for batch."""
PARTITIONS_SQL = "view string, store string, received_day date"
_PARTITIONS_AT_ONCE = 32
_ROWS_AT_ONCE = 100
"""Rows of a partition that are read at once, up to about 50 kB each. Bounds a worker's memory."""
_ROWS_OF_VIEWS_AT_ONCE = 400
"""Where a partition has the rows of all views, most of which are small: further pages come one partition at a time."""


class SpeedPartition(NamedTuple):
    """The rows of a view and store that were received on a UTC day: a partition of Cassandra, or a slice of one."""

    view: str
    store: str
    received_day: date


@dataclass(frozen=True)
class SpeedSpan:
    """The rows of one generation with `since` <= epoch < `until`."""

    connect: "Callable[[], Session]"
    generation: int
    since: datetime
    until: datetime

    @property
    def is_empty(self) -> bool:
        """Whether no row can lie in it."""
        return self.since >= self.until

    def partitions(self) -> list[SpeedPartition]:
        """Every partition that may have such rows: keys only."""
        if self._layout.is_by_store:  # which views a partition has is in its rows
            views = [*(view.name for view in registered_views()), WAITING.name]
            return [SpeedPartition(view, row.store, row.received_day.date()) for row in self._keys() for view in views]
        return [SpeedPartition(row.view_name, row.store, row.received_day.date()) for row in self._keys()]

    def _keys(self) -> Iterator[Any]:
        """The keys of Cassandra's partitions that may have such rows."""
        days = (self.since.date(), self.until.date())
        names = ", ".join(self._layout.cells_key)
        for row in self.connect().execute(f"SELECT DISTINCT {names} FROM {self._layout.cells}"):  # noqa: S608 - our own names
            if row.generation == self.generation and days[0] <= row.received_day.date() <= days[1]:
                yield row

    def read(self, shape: Shape, partitions: Sequence[SpeedPartition]) -> Iterator[list[Addition]]:
        """What the rows of each partition add to the cells of this shape."""
        for rows in self._rows(partitions):
            yield [
                Addition(key, utc(row.epoch), states) for row in rows for key, states in read_block(shape, row.block)
            ]

    def blocks(self, partitions: Sequence[SpeedPartition]) -> Iterator[list[str]]:
        """The blocks of each partition's rows as they are."""
        return ([row.block for row in rows] for rows in self._rows(partitions))

    def days(self) -> dict[str, dict[tuple[str, date], list[date]]]:
        """By view the stores and UTC days that its rows have windows of, each with the days of receipt."""
        found: dict[str, dict[tuple[str, date], list[date]]] = {view.name: {} for view in registered_views()}
        for (store, received), rows in self._rows_of_views():
            days: dict[str, set[date]] = {}
            for row in rows:
                windows = set(orjson.loads(row.block)[WINDOW_KEY])
                days.setdefault(row.view_name, set()).update(instant(window).date() for window in windows)
            for view, own in days.items():
                for day in own:
                    found[view].setdefault((store, day), []).append(received)
        return {view: own for view, own in found.items() if own}

    @cached_property
    def _layout(self) -> SpeedLayout:
        """It never changes, so it is read once."""
        return layout_of(self.connect(), self.generation)

    def _rows(self, partitions: Sequence[SpeedPartition]) -> Iterator[Iterable[Any]]:
        """The rows of each partition, by epoch."""
        return self._selected("view_name = ?", [(own.store, own.received_day, own.view) for own in partitions])

    def _rows_of_views(self) -> Iterator[tuple[tuple[str, date], Iterable[Any]]]:
        """Yields (store, day of receipt) with rows of registered views: of all of them, where they lie together."""
        if self.is_empty:
            return
        names = [view.name for view in registered_views()]
        keys: list[tuple[str, date, Any]]
        if self._layout.is_by_store:
            condition, keys = "view_name IN ?", [(row.store, row.received_day.date(), names) for row in self._keys()]
        else:
            condition = "view_name = ?"
            found = (row for row in self._keys() if row.view_name in names)
            keys = [(row.store, row.received_day.date(), row.view_name) for row in found]
        selected = self._selected(condition, keys, _ROWS_OF_VIEWS_AT_ONCE)
        for (store, day, _), rows in zip(keys, selected, strict=True):
            yield (store, day), rows

    def _selected(
        self, condition: str, keys: Sequence[tuple[str, date, Any]], rows_at_once: int = _ROWS_AT_ONCE
    ) -> Iterator[Iterable[Any]]:
        """The rows of each key: store, day of receipt, and what `condition` asks for."""
        if self.is_empty:
            yield from (() for _ in keys)
            return
        session = self.connect()
        select = session.prepare(
            f"SELECT view_name, epoch, block FROM {self._layout.cells} "  # noqa: S608 - our own names
            f"WHERE store = ? AND received_day = ? AND {condition} AND generation = ? AND epoch >= ? AND epoch < ?"
        )
        select.fetch_size = rows_at_once
        for start in range(0, len(keys), _PARTITIONS_AT_ONCE):
            values = [
                (*key, self.generation, self.since, self.until) for key in keys[start : start + _PARTITIONS_AT_ONCE]
            ]
            found = execute_concurrent_with_args(
                session, select, values, concurrency=_PARTITIONS_AT_ONCE, raise_on_first_error=True
            )
            yield from (rows for _, rows in found)


@dataclass(frozen=True)
class StoreDayFinder:
    """Runs in Spark's workers: takes partitions, returns `STORE_DAYS`. Cells stay in the worker."""

    span: SpeedSpan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for each day of a partition; of waiting events one row per partition. None where it has no rows."""
        shapes: dict[str, Shape] = {shape.name: shape for shape in (*registered_views(), WAITING)}
        for batch in batches:
            listed = sorted(SpeedPartition(**row) for row in batch.to_pylist())
            for view, own in groupby(listed, key=attrgetter("view")):
                partitions = list(own)
                for partition, found in zip(partitions, self.span.read(shapes[view], partitions), strict=True):
                    if found:
                        yield pa.RecordBatch.from_pylist(_store_days(partition, found), schema=STORE_DAYS)


def _store_days(partition: SpeedPartition, additions: Sequence[Addition]) -> list[dict[str, object]]:
    own = partition._asdict()
    if partition.view == WAITING.name:
        return [own | {"waiting": sum(number_of(each.states) for each in additions)}]
    return [own | {"day": day} for day in sorted({instant(each.key.window).date() for each in additions})]
