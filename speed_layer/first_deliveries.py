"""Which delivery of an event speed counts: the first that it met, by the place that is remembered for the identity.

Inside a micro-batch the first is found as in batch. Places are written before anything is counted, so a replay of the
micro-batch finds its own places and counts the same events again (R7). Nothing is removed: rows expire, when no repeat
of the event can be counted any more (R5).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from speed_layer.cassandra_batches import Insert, partition_slices, read_all, write_all

if TYPE_CHECKING:
    from cassandra.cluster import Session

_SELECT = (
    "SELECT identity, partition, offset FROM first_deliveries "
    "WHERE generation = ? AND topic = ? AND store = ? AND day = ? AND identity IN ?"
)
_INSERT = (
    "INSERT INTO first_deliveries (generation, topic, store, day, identity, partition, offset) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?"
)
_MICROSECONDS = pa.duration("us")
_PLACE_BYTES = 100
"""Of a row besides its identity."""

Identity = tuple[str, str]
"""Of an event: its topic and the identity in it."""
Place = tuple[int, int]
"""Partition and offset."""


class Delivery(NamedTuple):
    """Where the identity of an event is remembered, and the place of one delivery of it."""

    topic: str
    store: str
    day: date
    identity: str
    partition: int
    offset: int
    received_at: datetime

    @property
    def of(self) -> Identity:
        """What it delivers."""
        return self.topic, self.identity

    @property
    def place(self) -> Place:
        """Where it lies in the topic."""
        return self.partition, self.offset


_FIELDS = Delivery._fields


def first_in_batch(deliveries: Iterable[Delivery]) -> list[Delivery]:
    """Of the deliveries of a micro-batch the first of each identity: the order of R3, as in `batch_layer.deliveries`.

    In one partition the least offset, as stamps may step back; of several partitions the one received first.
    """
    homes: dict[tuple[Identity, int], Delivery] = {}
    for each in sorted(deliveries, key=attrgetter("offset")):
        homes.setdefault((each.of, each.partition), each)
    met: dict[Identity, Delivery] = {}
    for each in sorted(homes.values(), key=attrgetter("received_at", "partition")):
        met.setdefault(each.of, each)
    return list(met.values())


def settled(met: Sequence[Delivery], known: Mapping[Identity, Place]) -> tuple[dict[Identity, Place], list[Delivery]]:
    """The place that counts of each identity, and the deliveries among `met` that lie there; `known` are remembered."""
    own = [each for each in met if known.get(each.of, each.place) == each.place]
    return {**known, **{each.of: each.place for each in own}}, own


class FirstDeliveries:
    """What one generation remembers."""

    def __init__(self, session: "Session", generation: int, oldest: timedelta, ttl: timedelta) -> None:
        """`oldest`: what is older on arrival waits for batch, is not looked up and passes. `ttl`: of the rows."""
        self._session, self._generation, self._oldest = session, generation, oldest
        self._ttl_seconds = int(ttl.total_seconds())

    def among(self, events: pa.Table) -> pa.Table:
        """The events without those that repeat an earlier delivery. From now on these are remembered as the first."""
        age = pc.subtract(events["received_at"], events["happened_at"]).cast(_MICROSECONDS)
        too_old = pc.greater(age, pa.scalar(self._oldest, _MICROSECONDS))
        young = events.filter(pc.invert(too_old))
        deliveries = [Delivery(*values) for values in zip(*(young[name].to_pylist() for name in _FIELDS), strict=True)]
        met = first_in_batch(deliveries)
        firsts, own = settled(met, self._known(met))
        # Those of a replay too: they are to live as long as the rows that it writes.
        self._remember(own)
        counts = pa.array([firsts[each.of] == each.place for each in deliveries], pa.bool_())
        return pa.concat_tables([events.filter(too_old), young.filter(counts)])

    def _known(self, deliveries: Iterable[Delivery]) -> dict[Identity, Place]:
        asked = [
            (self._generation, *key, [each.identity for each in own])
            for key, own in partition_slices(deliveries, _partition)
        ]
        found = read_all(self._session, self._session.prepare(_SELECT), asked)
        return {
            (topic, row.identity): (row.partition, row.offset)
            for (_, topic, *_), rows in zip(asked, found, strict=True)
            for row in rows
        }

    def _remember(self, deliveries: Iterable[Delivery]) -> None:
        insert = Insert(self._session.prepare(_INSERT), itemgetter(1, 2, 3), _size)
        ordered = sorted(deliveries, key=_partition)
        write_all(self._session, insert, [(self._generation, *each[:-1], self._ttl_seconds) for each in ordered])


def _partition(delivery: Delivery) -> tuple[str, str, date]:
    return delivery.topic, delivery.store, delivery.day


def _size(row: tuple[Any, ...]) -> int:
    return len(row[4].encode()) + _PLACE_BYTES
