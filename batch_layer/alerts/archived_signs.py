"""When events happened and when they came, from narrow columns of the master dataset, without Spark."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from batch_layer.touched import Master
from master_dataset.lost_files import naming_lost_files
from master_dataset.opened import opened
from master_dataset.sources import registered_sources
from views.core.cut import BEGINNING

_MS = timedelta(milliseconds=1)
_SENSOR, _LASTS = "sensor_id", "interval_ms"


class Arrival(NamedTuple):
    """The first delivery of an event. `ended_ms`: when what it tells of was over; `sensor`: None if it names none."""

    store: str
    sensor: str | None
    happened_ms: int
    ended_ms: int
    received_ms: int


@dataclass(frozen=True)
class ArchivedSigns:
    """Of events received before the cut. `masters`: source to its table."""

    masters: Mapping[str, Master]
    cut: datetime

    def arrivals(
        self, source: str, stores: Collection[str], days: Collection[date], since: datetime = BEGINNING
    ) -> Sequence[Arrival]:
        """First deliveries of these stores and UTC days, as far as they came from `since` on. MasterFileLost."""
        if source not in self.masters or not stores or not days:
            return []
        columns = registered_sources()[source].columns
        own = [name for name in (_SENSOR, _LASTS) if name in columns]
        first: dict[int, Mapping[str, Any]] = {}
        for row in self._rows(source, stores, days, since, own):
            known = first.setdefault(row["identity_hash"], row)
            if row["received_at"] < known["received_at"]:
                first[row["identity_hash"]] = row
        return [_arrival(row) for row in first.values()]

    def _rows(
        self, source: str, stores: Collection[str], days: Collection[date], since: datetime, own: Sequence[str]
    ) -> Iterator[Mapping[str, Any]]:
        master = self.masters[source]
        table = DeltaTable(master.path, version=master.version)
        received = pc.field("received_at")
        where = pc.field("day").isin(sorted(days)) & pc.field("store").isin(sorted(stores))
        where &= (received < pa.scalar(self.cut)) & (received >= pa.scalar(since))
        names = ["store", "happened_at", "received_at", "identity_hash", *own]
        with naming_lost_files(table):
            for batch in opened(table).scanner(columns=names, filter=where).to_batches():
                yield from batch.to_pylist()


def _arrival(row: Mapping[str, Any]) -> Arrival:
    happened_ms = (row["happened_at"] - BEGINNING) // _MS
    lasted_ms = row.get(_LASTS) or 0
    return Arrival(
        row["store"], row.get(_SENSOR), happened_ms, happened_ms + lasted_ms, (row["received_at"] - BEGINNING) // _MS
    )
