"""Which delivery of an event the speed layer counts: the first one, by the position remembered for its identity.

Within a micro-batch the first delivery is found as in batch. Positions are written before anything is counted, so a
replay of the micro-batch finds its own positions and counts the same events again (R7). Nothing is deleted: rows expire
when no duplicate of the event can count any more (R5).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from speed_layer.cassandra_batches import Insert, partition_slices, read_all, write_all
from views.control.speed_layout import SpeedLayout

if TYPE_CHECKING:
    from cassandra.cluster import Session

_MICROSECONDS = pa.duration("us")
_PLACE_BYTES = 100
"""The columns of a row besides its identity."""
_IDENTITY = 4
"""Where the identity is among the values of an insert."""

Identity = tuple[str, str]
"""Of an event: its topic and the identity in it."""
Place = tuple[int, int]
"""Partition and offset."""


class Delivery(NamedTuple):
    """One delivery of an event: the key under which its identity is remembered, and its position."""

    topic: str
    store: str
    day: date
    identity: str
    partition: int
    offset: int
    received_at: datetime

    @property
    def of(self) -> Identity:
        """The identity."""
        return self.topic, self.identity

    @property
    def place(self) -> Place:
        """Partition and offset."""
        return self.partition, self.offset


_FIELDS = Delivery._fields


def first_in_batch(deliveries: Iterable[Delivery]) -> list[Delivery]:
    """The first delivery of each identity in a micro-batch, by R3, as in `batch_layer.deliveries`.

    Within a partition it is the one with the lowest offset, as timestamps may step back; of several partitions, the one
    received first.
    """
    homes: dict[tuple[Identity, int], Delivery] = {}
    for each in sorted(deliveries, key=attrgetter("offset")):
        homes.setdefault((each.of, each.partition), each)
    first: dict[Identity, Delivery] = {}
    for each in sorted(homes.values(), key=attrgetter("received_at", "partition")):
        first.setdefault(each.of, each)
    return list(first.values())


def settled(first: Sequence[Delivery], known: Mapping[Identity, Place]) -> tuple[dict[Identity, Place], list[Delivery]]:
    """Combine the remembered positions with the first deliveries of a micro-batch.

    Returns:
        The position that counts for each identity, and those of `first` that are at that position.
    """
    own = [each for each in first if known.get(each.of, each.place) == each.place]
    return {**known, **{each.of: each.place for each in own}}, own


class FirstDeliveries:
    """The positions that one generation remembers."""

    def __init__(
        self, session: "Session", generation: int, layout: SpeedLayout, oldest: timedelta, ttl: timedelta
    ) -> None:
        """`oldest`: events that are older on arrival are left to batch, and pass unfiltered. `ttl`: of the rows."""
        self._session, self._generation, self._layout, self._oldest = session, generation, layout, oldest
        self._ttl_seconds = int(ttl.total_seconds())
        table, column = layout.first_deliveries, layout.place_column
        self._select = (
            f"SELECT identity, partition, offset FROM {table} "  # noqa: S608 - our own names
            f"WHERE generation = ? AND topic = ? AND {column} = ? AND day = ? AND identity IN ?"
        )
        self._insert = (
            f"INSERT INTO {table} (generation, topic, {column}, day, identity, partition, offset) "  # noqa: S608 - likewise
            "VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?"
        )

    def filter_first(self, events: pa.Table) -> pa.Table:
        """The events that are no duplicates. They are remembered before this returns."""
        age = pc.subtract(events["received_at"], events["happened_at"]).cast(_MICROSECONDS)
        too_old = pc.greater(age, pa.scalar(self._oldest, _MICROSECONDS))
        young = events.filter(pc.invert(too_old))
        deliveries = [Delivery(*values) for values in zip(*(young[name].to_pylist() for name in _FIELDS), strict=True)]
        first = first_in_batch(deliveries)
        firsts, own = settled(first, self._remembered(first))
        # Also those of a replay: they must be kept as long as the rows that it writes.
        self._remember(own)
        counts = pa.array([firsts[each.of] == each.place for each in deliveries], pa.bool_())
        return pa.concat_tables([events.filter(too_old), young.filter(counts)])

    def _remembered(self, deliveries: Iterable[Delivery]) -> dict[Identity, Place]:
        queries = [
            (self._generation, *key, [each.identity for each in own])
            for key, own in partition_slices(deliveries, self._partition)
        ]
        found = read_all(self._session, self._session.prepare(self._select), queries)
        return {
            (topic, row.identity): (row.partition, row.offset)
            for (_, topic, *_), rows in zip(queries, found, strict=True)
            for row in rows
        }

    def _remember(self, deliveries: Iterable[Delivery]) -> None:
        insert = Insert(self._session.prepare(self._insert), itemgetter(1, 2, 3), _size)
        rows = [
            (self._generation, *key, each.identity, *each.place, self._ttl_seconds)
            for key, own in partition_slices(deliveries, self._partition)
            for each in own
        ]
        write_all(self._session, insert, rows)

    def _partition(self, delivery: Delivery) -> tuple[str, str | int, date]:
        """Topic, store or bucket, and day, in the order of the statements."""
        return delivery.topic, self._layout.place(delivery.store), delivery.day


def _size(row: tuple[Any, ...]) -> int:
    return len(row[_IDENTITY].encode()) + _PLACE_BYTES
