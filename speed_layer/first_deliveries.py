"""The delivery of an event that the speed layer counts: the first one, by the position remembered for its identity.

Within a micro-batch the first delivery is found as in batch. Positions are written before anything is counted, so a
replay of the micro-batch finds its own positions and counts the same events again (R7). Nothing is deleted: rows expire
when no duplicate of the event can count any more (R5).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from speed_layer.cassandra_batches import Insert, Wait, begin_writes, partition_slices, read_all
from speed_layer.new_identities import FilterFiles, IdentityFilter, Mask
from views.control.generation import Generation

if TYPE_CHECKING:
    from cassandra.cluster import Session

_MICROSECONDS = pa.duration("us")
_PLACE_BYTES = 100
"""The columns of a row besides its identity."""
_IDENTITY = 4
"""Where the identity is among the values of an insert."""
_BUCKET, _HASH = "bucket", "identity_hash"
_REMEMBERED = ("topic", _BUCKET, "day", "identity", "partition", "offset")
"""The columns of an insert, except the generation. The first three are those of a partition."""
_EPOCH_DAY = date(1970, 1, 1)

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
        self,
        session: "Session",
        generation: Generation,
        oldest: timedelta,
        ttl: timedelta,
        filters: FilterFiles | None = None,
    ) -> None:
        """`oldest`: events that are older on arrival are left to batch, and pass unfiltered. `ttl`: of the rows.

        `filters`: None if Cassandra is asked for every identity. Only for a layout with buckets.
        """
        self._session, self._generation, self._oldest, self._filters = session, generation, oldest, filters
        self._ttl_seconds = int(ttl.total_seconds())
        table, column = generation.layout.first_deliveries, generation.layout.place_column
        of_partition = f"FROM {table} WHERE generation = ? AND topic = ? AND {column} = ? AND day = ?"
        self._select = f"SELECT identity, partition, offset {of_partition} AND identity IN ?"
        self._select_any = f"SELECT identity {of_partition} LIMIT 1"
        self._insert = (
            f"INSERT INTO {table} (generation, topic, {column}, day, identity, partition, offset) "  # noqa: S608 - our own names
            "VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?"
        )

    def filter_first(self, events: pa.Table) -> tuple[pa.Table, Wait]:
        """The events that are no duplicates. Wait until they are remembered before any of them is counted."""
        age = pc.subtract(events["received_at"], events["happened_at"]).cast(_MICROSECONDS)
        keep = pc.greater(age, pa.scalar(self._oldest, _MICROSECONDS)).to_numpy()
        is_young = ~keep
        young = self._young(events, pa.array(is_young))
        is_new = self._are_new(young)
        counts = is_new & ~_are_repeated(young)
        counts[~counts] = self._are_counted(young.filter(pa.array(~counts)), is_new[~counts])
        # Also those of a replay: they must be kept as long as the rows that it writes.
        are_remembered = self._remember(young.filter(pa.array(counts)))
        keep[is_young] = counts
        return events.filter(pa.array(keep)), are_remembered

    def _young(self, events: pa.Table, is_young: pa.Array) -> pa.Table:
        """What is asked of these events, with the value of `SpeedLayout.place_column`."""
        young = events.select([*_FIELDS, _HASH]).filter(is_young)
        stores = young["store"].combine_chunks().dictionary_encode()
        places = [self._generation.layout.place(store) for store in stores.dictionary.to_pylist()]
        kind = pa.int64() if self._generation.layout.is_by_store else pa.string()
        return young.append_column(_BUCKET, pa.array(places, kind).take(stores.indices))

    def _are_new(self, events: pa.Table) -> Mask:
        """Mask of events whose identity is surely not remembered. They are added to the filters."""
        is_new: Mask = np.zeros(events.num_rows, np.bool_)
        if self._filters is None:
            return is_new
        days, tasks = events["day"].cast(pa.int32()).to_numpy(), events[_BUCKET].to_numpy() % self._filters.tasks
        for day, task in set(zip(days.tolist(), tasks.tolist(), strict=True)):
            at = np.flatnonzero((days == day) & (tasks == task))
            is_new[at] = self._added(events.take(pa.array(at)), self._filters.of(_EPOCH_DAY + timedelta(day), task))
        return is_new

    def _added(self, events: pa.Table, own: IdentityFilter) -> Mask:
        """Add the identities of a day and task to their filter. Returns the mask of those surely not remembered."""
        partitions = own.partitions(events["topic"], events[_BUCKET].to_numpy())
        named, at = np.unique(partitions, return_index=True)
        columns = (events.take(pa.array(at))[name].to_pylist() for name in _REMEMBERED[:3])
        keys = dict(zip(named.tolist(), zip(*columns, strict=True), strict=True))
        unmet = own.unmet(keys)
        queries = [(self._generation.number, *keys[each]) for each in unmet]
        found = read_all(self._session, self._session.prepare(self._select_any), queries)
        for partition, rows in zip(unmet, found, strict=True):
            own.meet(partition, is_empty=not rows)
        return own.add(partitions, events[_HASH].to_numpy().view(np.uint64))

    def _are_counted(self, events: pa.Table, is_new: Mask) -> Mask:
        """Mask of the deliveries that count.

        `is_new`: those whose identity is surely not remembered. All deliveries of an identity share the answer, because
        its store and day are part of it.
        """
        deliveries = [Delivery(*values) for values in zip(*(events[name].to_pylist() for name in _FIELDS), strict=True)]
        first = first_in_batch(deliveries)
        new = {each.of for each, is_new in zip(deliveries, is_new.tolist(), strict=True) if is_new}
        firsts, _ = settled(first, self._remembered(each for each in first if each.of not in new))
        return np.fromiter((firsts[each.of] == each.place for each in deliveries), np.bool_, len(deliveries))

    def _remembered(self, deliveries: Iterable[Delivery]) -> dict[Identity, Place]:
        queries = [
            (self._generation.number, *key, [each.identity for each in own])
            for key, own in partition_slices(deliveries, self._partition)
        ]
        found = read_all(self._session, self._session.prepare(self._select), queries)
        return {
            (topic, row.identity): (row.partition, row.offset)
            for (_, topic, *_), rows in zip(queries, found, strict=True)
            for row in rows
        }

    def _remember(self, events: pa.Table) -> Wait:
        insert = Insert(self._session.prepare(self._insert), itemgetter(1, 2, 3), _size)
        ordered = events.select(_REMEMBERED).sort_by([(name, "ascending") for name in _REMEMBERED[:3]])
        columns = (ordered[name].to_pylist() for name in _REMEMBERED)
        own, ttl = repeat(self._generation.number), repeat(self._ttl_seconds)
        return begin_writes(self._session, insert, zip(own, *columns, ttl, strict=False))

    def _partition(self, delivery: Delivery) -> tuple[str, str | int, date]:
        """Topic, store or bucket, and day, in the order of the statements."""
        return delivery.topic, self._generation.layout.place(delivery.store), delivery.day


def _are_repeated(events: pa.Table) -> Mask:
    """Mask of events whose identity occurs more than once."""
    identities = pc.binary_join_element_wise(events["topic"], events["identity"], "\0").combine_chunks()
    numbers = identities.dictionary_encode().indices.to_numpy()
    repeated: Mask = np.bincount(numbers)[numbers] > 1
    return repeated


def _size(row: tuple[Any, ...]) -> int:
    return len(row[_IDENTITY].encode()) + _PLACE_BYTES
