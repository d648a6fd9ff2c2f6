"""One source's master table at one version, read from its Delta log and narrow columns, without Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from master_dataset.delta.dataset import report_lost_files

COMPACTION = "OPTIMIZE"
"""The operation, as the log calls it."""


class LogCleaned(Exception):
    """Some of the commits are no longer in the log."""


class File(NamedTuple):
    """A data file of `size` bytes: its rows are all of one day, the earliest received at `oldest_at`, None: unknown.

    `path` is relative to the table.
    """

    path: str
    size: int
    day: date
    oldest_at: datetime | None


def appended(path: str, since: int, until: int) -> Iterator[File]:
    """The files that versions `since` < v <= `until` appended, also those that were compacted or vacuumed later.

    LogCleaned or DeltaError if the log does not reach back to `since`.
    """
    first, known = since, {file.path for file in files_at(path, since)}
    for compaction in [*_compactions(path, since, until), until + 1]:
        if compaction - 1 > first:
            yield from (file for file in files_at(path, compaction - 1) if file.path not in known)
        if compaction <= until:
            first, known = compaction, {file.path for file in files_at(path, compaction)}


def files_at(path: str, version: int) -> list[File]:
    """The files of one version."""
    actions = pa.table(DeltaTable(path, version=version).get_add_actions(flatten=True)).to_pylist()
    return [
        File(each["path"], each["size_bytes"], each["partition.day"], each.get("min.received_at")) for each in actions
    ]


def _compactions(path: str, since: int, until: int) -> list[int]:
    """Their versions, since < version <= until, in order.

    The library gives commits from the asked one on, newest first, those behind the loaded version too; but it numbers
    them downwards from the loaded one. So they are numbered here, upwards from the oldest.
    """
    asked = until - since
    commits = DeltaTable(path, version=until).history(asked)[::-1][:asked] if asked > 0 else []
    if not commits:
        return []  # of a folder named with a pattern it lists none at all; such tables are not compacted
    if len(commits) < asked:
        raise LogCleaned(path)
    return [version for version, each in enumerate(commits, since + 1) if each.get("operation") == COMPACTION]


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
        with report_lost_files(table):
            for batch in table.to_pyarrow_dataset().scanner(columns=["day"], filter=where).to_batches():
                yield from _days_of(batch)


def _days_of(rows: pa.Table | pa.RecordBatch) -> list[date]:
    days: list[date] = pc.unique(rows["day"]).to_pylist()
    return days
