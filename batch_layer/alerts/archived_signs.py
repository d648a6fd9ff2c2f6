"""When events happened and were received, read from narrow columns of the master dataset without Spark."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import murmur2

from batch_layer.master import Master
from master_dataset.delta.dataset import arrow_dataset, report_lost_files, scan
from master_dataset.kafka.growth import Partitions
from master_dataset.parsing.parse import FUTURE_US
from master_dataset.sources import registered_sources
from master_dataset.storage import open_table
from views.core.cut import UNIX_EPOCH

LONGEST = timedelta(days=1)
"""The longest interval that one event describes."""
FUTURE = timedelta(microseconds=FUTURE_US)
"""How far a clock may be fast."""
_MS, _US = timedelta(milliseconds=1), 1000
_SENSOR, _LASTS = "sensor_id", "interval_ms"
_AT_ONCE = 10_000
_NAME = pa.dictionary(pa.int32(), pa.string())
_ROWS = pa.schema(
    [
        ("store", _NAME),
        ("sensor", _NAME),
        ("happened", pa.int64()),
        ("ended", pa.int64()),
        ("received", pa.int64()),
        ("identity", pa.int64()),
        ("misrouted", pa.bool_()),
    ]
)
"""Times are microseconds since 1970."""


class ArchivedEvent(NamedTuple):
    """The first delivery of an event in its store's partition, or else (`misrouted`) in one where alerts ignore it.

    Attributes:
        store: Id of the store.
        sensor: None if the event names none.
        happened_ms: When it happened.
        ended_ms: When the interval that it describes ended.
        received_ms: When it was received.
    """

    store: str
    sensor: str | None
    happened_ms: int
    ended_ms: int
    received_ms: int
    misrouted: bool

    @property
    def at_ms(self) -> int:
        """When it shows that the store was alive: not later than its receipt, because a clock may be fast."""
        return min(self.ended_ms, self.received_ms)


class TimeRange(NamedTuple):
    """An open time range: (`since_ms`, `until_ms`)."""

    since_ms: int
    until_ms: int


@dataclass(frozen=True)
class ArchivedSigns:
    """Events received before the cut.

    There may be millions, so they are kept in columns, about 40 bytes each, and yielded one by one.

    Attributes:
        masters: Source to its table.
        cut: Of the publication.
        partitions: Those of the topics.
    """

    masters: Mapping[str, Master]
    cut: datetime
    partitions: Partitions

    def events_on(self, source: str, stores: Collection[str], day: date) -> Iterator[ArchivedEvent]:
        """The first deliveries of these stores on a UTC day. MasterFileLostError."""
        yield from self._first(source, stores, pc.field("day") == pa.scalar(day), UNIX_EPOCH, {})

    def events_within(
        self, source: str, within: Mapping[str, TimeRange], since: datetime = UNIX_EPOCH
    ) -> Iterator[ArchivedEvent]:
        """First deliveries that are signs of life within the range of their store, received from `since` on.

        MasterFileLostError.
        """
        if not within:
            return
        first = _instant(min(each.since_ms for each in within.values())) - LONGEST
        last = _instant(max(each.until_ms for each in within.values())) + FUTURE
        happened, day = pc.field("happened_at"), pc.field("day")
        where = (day >= pa.scalar(first.date())) & (day <= pa.scalar(last.date()))
        where &= (happened > pa.scalar(first)) & (happened < pa.scalar(last))
        yield from self._first(source, within, where, since, within)

    def _first(
        self,
        source: str,
        stores: Collection[str],
        where: pc.Expression,
        since: datetime,
        within: Mapping[str, TimeRange],
    ) -> Iterator[ArchivedEvent]:
        if source not in self.masters or not stores:
            return
        received, identity = pc.field("received_at"), pc.field("identity_hash")
        where &= pc.field("store").isin(sorted(stores)) & (received < pa.scalar(self.cut))
        rows = self._rows(source, where & (received >= pa.scalar(since)), within)
        if since > UNIX_EPOCH and len(rows):  # some may be repetitions of what was received earlier
            rows = self._rows(source, where & identity.isin(pc.unique(rows["identity"])), within)
        first = _first_of_each(rows)
        first = _within(first.filter(pc.greater_equal(first["received"], (since - UNIX_EPOCH) // _MS * _US)), within)
        for batch in first.to_batches(_AT_ONCE):
            columns = [batch.column(name).to_pylist() for name in _ROWS.names]
            for store, sensor, happened, ended, came, _, misrouted in zip(*columns, strict=True):
                yield ArchivedEvent(store, sensor, happened // _US, ended // _US, came // _US, misrouted)

    def _rows(self, source: str, where: pc.Expression, within: Mapping[str, TimeRange]) -> pa.Table:
        """All deliveries of events of which one may be a sign of life within the range of its store."""
        kept = [_near(batch, within) for batch in self._batches(source, where)]
        return pa.Table.from_batches(kept, _ROWS).unify_dictionaries().combine_chunks()

    def _batches(self, source: str, where: pc.Expression) -> Iterator[pa.RecordBatch]:
        """With the columns of `_ROWS`."""
        master, columns = self.masters[source], registered_sources()[source].columns
        table = open_table(master.path, master.version)
        own = [name for name in (_SENSOR, _LASTS) if name in columns]
        names = ["store", "partition", "happened_at", "received_at", "identity_hash", *own]
        with report_lost_files(table):
            for batch in scan(arrow_dataset(table), names, where).to_batches():
                nothing = pa.nulls(len(batch), pa.int64())
                sensor = batch[_SENSOR] if _SENSOR in own else nothing.cast(pa.string())
                lasted = pc.fill_null((batch[_LASTS] if _LASTS in own else nothing).cast(pa.int64()), 0)
                happened, received = (_micros(batch[name]) for name in ("happened_at", "received_at"))
                ended = pc.add(happened, pc.multiply(lasted, _US))
                misrouted = self._are_misrouted(batch)
                arrays = [batch["store"], sensor, happened, ended, received, batch["identity_hash"], misrouted]
                yield pa.record_batch([each.cast(of.type) for each, of in zip(arrays, _ROWS, strict=True)], _ROWS)

    def _are_misrouted(self, batch: pa.RecordBatch) -> pa.Array:
        stores = batch["store"].cast(pa.string()).dictionary_encode()
        keys = [store.encode() for store in stores.dictionary.to_pylist()]

        def elsewhere(partitions: int) -> pa.Array:
            homes = pa.array([murmur2(key, partitions) for key in keys], pa.int32())
            return pc.not_equal(batch["partition"], pc.take(homes, stores.indices))

        misrouted = elsewhere(self.partitions.open)
        for before, at in self.partitions.moves:
            came_later = pc.greater_equal(batch["received_at"], pa.scalar(at, batch["received_at"].type))
            misrouted = pc.and_(misrouted, pc.or_(elsewhere(before), came_later))
        return misrouted


def _near(batch: pa.RecordBatch, within: Mapping[str, TimeRange]) -> pa.RecordBatch:
    """The rows of `_within`, and earlier deliveries of the same events, which may have come before the range begins."""
    if not within:
        return batch
    since, until = _ranges(batch["store"], within)
    ended = pc.divide(batch["ended"], _US)
    return batch.filter(pc.and_(pc.greater(ended, since), pc.less(_at_ms(batch), until)))


def _within(rows: pa.Table, within: Mapping[str, TimeRange]) -> pa.Table:
    """The rows that are signs of life within the range of their store; all of them if there are no ranges."""
    if not within or not len(rows):
        return rows
    since, until = _ranges(rows["store"].combine_chunks(), within)
    at_ms = _at_ms(rows)
    return rows.filter(pc.and_(pc.greater(at_ms, since), pc.less(at_ms, until)))


def _at_ms(rows: pa.RecordBatch | pa.Table) -> pa.Array:
    return pc.divide(pc.min_element_wise(rows["ended"], rows["received"]), _US)


def _ranges(stores: pa.Array, within: Mapping[str, TimeRange]) -> tuple[pa.Array, pa.Array]:
    """The bounds of the range of each store."""
    store = pc.index_in(stores.cast(pa.string()), pa.array(list(within)))
    since, until = (pc.take(pa.array([each[bound] for each in within.values()]), store) for bound in (0, 1))
    return since, until


def _first_of_each(rows: pa.Table) -> pa.Table:
    """The earliest row of each identity in its store's partition; if there is none, in any other."""
    if not len(rows):
        return rows
    rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in ("identity", "misrouted", "received")]))
    identity = rows["identity"].combine_chunks()
    is_first = pa.concat_arrays([pa.array([True]), pc.not_equal(identity[1:], identity[:-1])])
    return rows.filter(is_first)


def _micros(column: pa.Array) -> pa.Array:
    return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _instant(ms: int) -> datetime:
    return UNIX_EPOCH + ms * _MS
