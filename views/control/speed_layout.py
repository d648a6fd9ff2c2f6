"""Where the rows of a generation of the speed layer lie in Cassandra (ADR 0071, ADR 0072).

    by view       `speed_cells`            a partition for each view, store and day of receipt
                  `first_deliveries`       a partition for each topic, store and day
                  `raw_pos_transactions`   a row for each receipt
    by store      `speed_cells_by_store`   a partition for each store and day of receipt: each view is a slice of it
                  `first_deliveries_by_bucket`   a partition for each topic, day and bucket of about ten stores
                  `receipt_blocks`         a row for the receipts of a store and hour that a task has read together

A release between these two writes the first two tables by store, and receipts to `raw_pos_transactions`.

The layout is chosen when a generation begins, and never changes. It is recorded among the definitions of the
generation: to a release that does not know it, the generation is one of other definitions, with which it neither goes
on nor publishes. The pointer names such a generation in a column of its own: see `views.control.publication`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self
from zlib import crc32

from master_dataset.errors import CassandraUnavailableError

SELECT_DEFINITIONS = "SELECT definitions FROM generations WHERE generation = ?"
STORES_PER_BUCKET, LEAST_BUCKETS = 10, 8
_LAYOUT = "(layout)"
"""The name among the definitions; no view has brackets in its name."""
_BY_STORE = re.compile(r"by store, ([1-9][0-9]*) buckets(, receipts in blocks)?")


class Session(Protocol):
    """The part of a driver's session that is needed."""

    def prepare(self, query: str) -> Any:  # noqa: ANN401 - the driver has no types
        """A prepared statement."""

    def execute(self, query: Any, parameters: Any = None) -> Any:  # noqa: ANN401 - likewise
        """Its rows."""


@dataclass(frozen=True)
class SpeedLayout:
    """The layout of a generation.

    Attributes:
        buckets: of first deliveries; 0: it lies by view, as in former releases.
        packs_receipts: whether receipts lie in blocks. If so, `buckets` is not 0.
    """

    buckets: int = 0
    packs_receipts: bool = False

    @classmethod
    def for_stores(cls, stores: int) -> Self:
        """The layout of this release, for that many stores.

        At 5,000 receipts a second and 10,000 stores, a partition of first deliveries has 430,000 rows on average.
        """
        return cls(max(LEAST_BUCKETS, -(-stores // STORES_PER_BUCKET)), packs_receipts=True)

    @property
    def is_by_store(self) -> bool:
        """Whether it is one that releases before ADR 0071 do not know."""
        return self.buckets > 0

    @property
    def cells(self) -> str:
        """The table of speed rows. Both have the same columns."""
        return "speed_cells_by_store" if self.is_by_store else "speed_cells"

    @property
    def cells_key(self) -> tuple[str, ...]:
        """The columns of a partition of `cells`."""
        of_store = ("store", "received_day", "generation")
        return of_store if self.is_by_store else ("view_name", *of_store)

    @property
    def first_deliveries(self) -> str:
        """The table of first deliveries. Both have the same columns, except `place_column`."""
        return "first_deliveries_by_bucket" if self.is_by_store else "first_deliveries"

    @property
    def place_column(self) -> str:
        """The column of `first_deliveries` that says where the events of a store lie."""
        return "bucket" if self.is_by_store else "store"

    def place(self, store: str) -> str | int:
        """The value of `place_column`: always the same for a store."""
        return crc32(store.encode()) % self.buckets if self.is_by_store else store

    def task(self, store: str, tasks: int) -> int:
        """The task, of that many, that counts the events of a store: one for all stores that share a bucket."""
        where = self.place(store)
        return (crc32(where.encode()) if isinstance(where, str) else where) % tasks

    def recorded_with(self, definitions: Mapping[str, str]) -> dict[str, str]:
        """The definitions of a generation as its row has them: those of its views, and its layout."""
        receipts = ", receipts in blocks" if self.packs_receipts else ""
        own = {_LAYOUT: f"by store, {self.buckets} buckets{receipts}"} if self.is_by_store else {}
        return {**definitions, **own}

    @classmethod
    def recorded_in(cls, row: Mapping[str, str] | None) -> tuple[Self, dict[str, str]]:
        """The layout of a generation, and the definitions of its views.

        A layout that this release does not know stays among the definitions: they equal those of no view.
        """
        definitions = dict(row or {})
        if found := _BY_STORE.fullmatch(definitions.get(_LAYOUT, "")):
            del definitions[_LAYOUT]
            return cls(int(found[1]), packs_receipts=found[2] is not None), definitions
        return cls(), definitions

    @classmethod
    def to_read(cls, generation: int, row: Mapping[str, str] | None) -> Self:
        """The layout in which the rows of a generation are read.

        Raises:
            CassandraUnavailableError: A newer release has written them, and this one would not find them.
        """
        layout, definitions = cls.recorded_in(row)
        if _LAYOUT in definitions:
            message = f"The rows of generation {generation} of the speed layer are in a layout of a newer release."
            raise CassandraUnavailableError(message, do="Use that release, or: galatea speed restart")
        return layout


BY_VIEW = SpeedLayout()
CELL_TABLES = (BY_VIEW.cells, SpeedLayout(LEAST_BUCKETS).cells)
"""All tables that `SpeedLayout.cells` names."""


def layout_of(session: Session, generation: int) -> SpeedLayout:
    """The layout of a generation. CassandraUnavailableError as `SpeedLayout.to_read`."""
    row = session.execute(session.prepare(SELECT_DEFINITIONS), (generation,)).one()
    return SpeedLayout.to_read(generation, row.definitions if row is not None else None)
