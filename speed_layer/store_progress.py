"""What the speed layer has counted of each store: the table `speed_stores`.

Positions say how far partitions were read, and a partition has stores of several tenants. A tenant is shown the
progress of its own stores instead (ADR 0069).

The progress of a store is recorded after the rows of a micro-batch, and before its positions: a reader of positions,
then progress, then rows, finds the rows of every mark that it has read.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from speed_layer.cassandra_batches import Insert, Wait, begin_writes

if TYPE_CHECKING:
    from cassandra.cluster import Session

_MARK = "INSERT INTO speed_stores (generation, store, mark) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?"
_RECEIVED = "INSERT INTO speed_stores (generation, store, received_at) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?"
_KEPT = "SELECT kept_from, kept_through FROM speed_stores WHERE generation = ? LIMIT 1"
_KEEP = "UPDATE speed_stores USING TIMESTAMP ? SET kept_from = ?, kept_through = ? WHERE generation = ?"
_PARTITION = itemgetter(0)
_BYTES = 64
"""Bytes of a row, in addition to the name of its store."""


class StoreProgress:
    """Records the progress of stores in one generation.

    The write timestamps are the mark and the time of receipt: neither goes back, even if a row is written again.
    """

    def __init__(self, session: "Session", generation: int, ttl: timedelta) -> None:
        """`ttl`: how long speed rows are kept."""
        self._session, self._generation, self._ttl_seconds = session, generation, int(ttl.total_seconds())
        self._kept_from: int | None = None  # None until this object has recorded any

    def keep(self, micro_batch: int) -> None:
        """Say that the progress of all stores is recorded up to this micro-batch. Before its positions are.

        Call it for every micro-batch of a query, with an object of that query: before it, a process of an earlier
        release may have written some without progress. Then what is recorded holds from the first one of the query on.
        """
        if self._kept_from is None:
            row = self._session.execute(self._session.prepare(_KEPT), (self._generation,)).one()
            goes_on = row is not None and row.kept_through is not None and row.kept_through >= micro_batch - 1
            self._kept_from = row.kept_from if goes_on else micro_batch
        values = (micro_batch + 1, self._kept_from, micro_batch, self._generation)
        self._session.execute(self._session.prepare(_KEEP), values)

    def counted(self, micro_batch: int, events: pa.Table) -> None:
        """Record the events of a micro-batch, whose rows are written. Returns when that is acknowledged."""
        newest = newest_of_stores(events)
        of_store = ((store, micros // 1000, micros) for store, micros in newest.items())
        both = self._mark(2 * micro_batch, newest), self._begin(_RECEIVED, of_store)
        for are_recorded in both:
            are_recorded()

    def visited(self, micro_batch: int, stores: Iterable[str]) -> None:
        """Record that visits in these stores have closed in a micro-batch, whose rows are written.

        They may close long after their last event, and are written after the events of the micro-batch: it is a mark
        of its own.
        """
        self._mark(2 * micro_batch + 1, stores)()

    def _mark(self, mark: int, stores: Iterable[str]) -> Wait:
        return self._begin(_MARK, ((store, mark, mark) for store in stores))

    def _begin(self, cql: str, rows: Iterable[tuple[str, int, int]]) -> Wait:
        insert = Insert(self._session.prepare(cql), _PARTITION, lambda row: _BYTES + len(row[1].encode()))
        return begin_writes(self._session, insert, ((self._generation, *row, self._ttl_seconds) for row in rows))


def newest_of_stores(events: pa.Table) -> Mapping[str, int]:
    """When the newest event of each store was received, in microseconds since 1970."""
    received = pa.table({"store": events["store"], "at": events["received_at"].cast(pa.int64())})
    newest = received.group_by("store", use_threads=False).aggregate([("at", "max")]).sort_by("store")
    return dict(zip(newest["store"].to_pylist(), newest["at_max"].to_pylist(), strict=True))
