"""A run of millions of cells in Cassandra, written as Spark's workers write one but computed from nothing."""

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from batch_layer.blocks import made_schema
from batch_layer.run import BlockWriter, Manifest, Run
from views import registered_views, view_named
from views.core import View
from views.core.cells import CellKey, write_block

if TYPE_CHECKING:
    from cassandra.cluster import Session

DAYS = 365
WINDOWS, SKUS = 50, 20
CELLS_OF_A_BLOCK = WINDOWS * SKUS
FIRST_DAY = date(2026, 1, 1)
VIEW = "sales_by_sku"
"""Nearly all cells are its."""


@dataclass(frozen=True)
class LargeRun:
    """`blocks`: of each day, the same one for every store."""

    name: str
    stores: int
    blocks: Mapping[date, str]

    @classmethod
    def of(cls, cells: int, name: str) -> Self:
        """At least so many cells, on all days of a year if there are enough of them."""
        rng = random.Random(13)  # noqa: S311 - no secret
        count = max(1, cells // CELLS_OF_A_BLOCK)
        days = [FIRST_DAY + timedelta(days=number) for number in range(min(DAYS, count))]
        return cls(name, -(-count // len(days)), {day: _block(rng, view_named(VIEW), day) for day in days})

    @property
    def cells(self) -> int:
        """How many it has."""
        return self.stores * len(self.blocks) * CELLS_OF_A_BLOCK

    @property
    def manifest(self) -> Manifest:
        """Of every view, as a real one names them."""
        return {(view.name, day): self.name for view in registered_views() for day in self.blocks}

    def write(self, connect: "Callable[[], Session]") -> None:
        """All blocks, the days of a store in a row, then the manifest."""
        table = partial(pa.Table.from_pylist, schema=made_schema(view_named(VIEW)))
        for store in range(1, self.stores + 1):
            rows = table([{"store": str(store), "day": day, "block": block} for day, block in self.blocks.items()])
            deque(BlockWriter(connect, VIEW, self.name)(iter(rows.to_batches())), maxlen=0)
        Run(connect, self.name).write_manifest(self.manifest)


def _block(rng: random.Random, view: View, day: date) -> str:
    opens = int(datetime(day.year, day.month, day.day, 7, tzinfo=UTC).timestamp())
    places = [(opens + 900 * window, str(8_580_000 + sku)) for window in range(WINDOWS) for sku in range(SKUS)]
    cells = [
        (CellKey(window, ("EUR", sku)), tuple(rng.randint(0, 50_000) for _ in view.columns)) for window, sku in places
    ]
    return write_block(view, cells)
