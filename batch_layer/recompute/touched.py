"""Which days a rebuild has to recompute (R12), read from the Delta log and narrow columns, without Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from batch_layer.appended import LogCleaned, appended, files_at
from master_dataset.delta.lost_files import naming_lost_files

log = structlog.get_logger()


@dataclass(frozen=True)
class Master:
    """One source's table at one version: everything that a run reads."""

    path: str
    version: int

    @classmethod
    def newest(cls, path: str) -> "Master":
        """The table as it is now."""
        return cls(path, DeltaTable(path).version())

    def days(self, stores: Sequence[str] = ()) -> set[date]:
        """Every day that has events, or on which one of these stores has."""
        if stores:
            return set(self._days(pc.field("store").isin(list(stores))))
        return {file.day for file in files_at(self.path, self.version)}

    def days_received(self, since: datetime, before: datetime) -> set[date]:
        """The days of events received in [since, before)."""
        received = pc.field("received_at")
        return set(self._days((received >= pa.scalar(since)) & (received < pa.scalar(before))))

    def days_stepped_back(self, base_version: int, before: datetime) -> set[date]:
        """The days of rows archived since the base's version with a stamp before its cut: `clock_stepped_back`."""
        try:
            files = list(appended(self.path, base_version, self.version))
        except (DeltaError, LogCleaned):
            log.warning("rebuild.base_version_gone", path=self.path, version=base_version)
            return self.days()
        return {file.day for file in files if file.oldest_at is None or file.oldest_at < before}

    def _days(self, where: pc.Expression) -> Iterator[date]:
        table = DeltaTable(self.path, version=self.version)
        with naming_lost_files(table):
            for batch in table.to_pyarrow_dataset().scanner(columns=["day"], filter=where).to_batches():
                yield from _days_of(batch)


def _days_of(rows: pa.Table | pa.RecordBatch) -> list[date]:
    days: list[date] = pc.unique(rows["day"]).to_pylist()
    return days
