"""Compares the merged cells of a store and day with recomputed ones, where those are: in Spark's workers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from cassandra.concurrent import execute_concurrent_with_args

from batch_layer.speed_span import Partition, SpeedSpan
from views.core.cells import Addition, CellKey, read_block
from views.core.cut import instant, month_of
from views.core.merge import merge_cells
from views.core.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

Place = tuple[str, date]
"""(store, UTC day of the window)."""
COMPARED = pa.schema(
    [
        ("store", pa.string()),
        ("day", pa.date32()),
        ("cells", pa.int64()),
        ("differing", pa.int64()),
        ("example", pa.string()),
    ]
)
"""A row per place: cells of either side, how many differ, one of them in words."""
_SELECT_BLOCK = "SELECT block FROM batch_cells WHERE view_name = ? AND store = ? AND month = ? AND run = ? AND day = ?"


@dataclass(frozen=True)
class Comparer:
    """Takes recomputed blocks, gives back `COMPARED`.

    `runs`: whose batch cells are published for a day. `received`: on which days speed received what it shows of a
    place; the rows themselves are read by whoever compares that place.
    """

    connect: "Callable[[], Session]"
    view: View
    runs: Mapping[date, str]
    speed: SpeedSpan
    received: Mapping[Place, Sequence[date]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compare batch by batch."""
        session = self.connect()
        for batch in batches:
            rows = batch.to_pylist()
            keys = [
                (self.view.name, r["store"], month_of(r["day"]), self.runs.get(r["day"], ""), r["day"]) for r in rows
            ]
            found = execute_concurrent_with_args(session, session.prepare(_SELECT_BLOCK), keys, concurrency=32)
            speed = self._speed([(row["store"], row["day"]) for row in rows])
            results = [self._compare(row, result.one(), speed) for row, (_, result) in zip(rows, found, strict=True)]
            yield pa.RecordBatch.from_pylist(results, schema=COMPARED)

    def _speed(self, places: Sequence[Place]) -> Mapping[Place, list[Addition]]:
        asked = [(place, received) for place in places for received in self.received.get(place, ())]
        partitions = [Partition(self.view.name, store, received) for (store, _), received in asked]
        found: dict[Place, list[Addition]] = {}
        for (place, _), additions in zip(asked, self.speed.read(self.view, partitions), strict=True):
            own = found.setdefault(place, [])
            own += (each for each in additions if instant(each.key.window).date() == place[1])
        return found

    def _compare(
        self,
        row: Mapping[str, Any],
        published: Any,  # noqa: ANN401 - a driver's row
        speed: Mapping[Place, list[Addition]],
    ) -> dict[str, Any]:
        batch = read_block(self.view, published.block) if published else iter(())
        fresh = speed.get((row["store"], row["day"]), [])
        merged = {cell.key: cell.merged for cell in merge_cells(self.view, batch, fresh, self.speed.since)}
        recomputed = dict(read_block(self.view, row["block"]))
        keys = merged.keys() | recomputed.keys()
        wrong = [key for key in keys if merged.get(key) != recomputed.get(key)]
        place = f"{self.view.name} store {row['store']}"
        example = _example(place, wrong[0], merged.get(wrong[0]), recomputed.get(wrong[0])) if wrong else None
        counted = {"cells": len(keys), "differing": len(wrong), "example": example}
        return {"store": row["store"], "day": row["day"], **counted}


def _example(place: str, key: CellKey, merged: object, recomputed: object) -> str:
    return f"{place} {instant(key.window):%Y-%m-%dT%H:%MZ} {key.dimensions}: merged {merged}, recomputed {recomputed}"
