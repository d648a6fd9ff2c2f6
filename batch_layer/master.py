"""One source's master table at one version, read from its Delta log and narrow columns, without Spark.

The days that a rebuild has to recompute (R12) follow from the files that were appended since the base. These are not
simply the files that the older version lacks, because a compaction writes new files of old rows. So the log is read
span by span, from one compaction to the next.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from deltalake.exceptions import DeltaError

from master_dataset.delta.dataset import arrow_dataset, report_lost_files, scan
from master_dataset.storage import open_table

_UNKNOWN_ROWS = 1_000_000
"""Of a file whose log entry does not say: many."""
_LOG_STEP = timedelta(milliseconds=1)
COMPACTION = "OPTIMIZE"
"""The name of the operation in the log."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Master:
    """One source's table at one version: everything that a run reads."""

    path: str
    version: int

    @classmethod
    def newest(cls, path: str) -> "Master":
        """The current version of the table."""
        return cls(path, open_table(path).version())

    def days(self, stores: Sequence[str] = ()) -> set[date]:
        """Every day that has events, or on which one of these stores has."""
        if stores:
            return set(self._days(pc.field("store").isin(list(stores))))
        return {file.day for file in files_at(self.path, self.version)}

    def days_shown(self, cut: datetime, oldest: timedelta) -> set[date]:
        """The days that may have events which one of the layers counts, by the log alone.

        Batch counts what was received before the cut, and speed what was at most `oldest` old when it was received. Of
        other days, such as those of a history that has just been sent, all events wait for the next publication.
        """
        files = files_at(self.path, self.version)
        return {
            each.day
            for each in files
            if each.oldest_at is None or each.oldest_at < cut or each.day >= (each.oldest_at - oldest).date()
        }

    def days_received(self, since: datetime, before: datetime) -> set[date]:
        """The days of events received in [since, before)."""
        received = pc.field("received_at")
        near = {file.day for file in files_at(self.path, self.version) if file.may_be_received(since, before)}
        return set(self._days((received >= pa.scalar(since)) & (received < pa.scalar(before)), near))

    def days_stepped_back(self, base_version: int, before: datetime) -> set[date]:
        """The days of rows archived since the base's version with a stamp before its cut: `clock_stepped_back`."""
        try:
            files = list(appended(self.path, base_version, self.version))
        except (DeltaError, LogCleanedError):
            log.warning("rebuild.base_version_gone", path=self.path, version=base_version)
            return self.days()
        return {file.day for file in files if file.oldest_at is None or file.oldest_at < before}

    def events_by_day(self) -> dict[date, int]:
        """How many rows the table has for each day, by its log alone."""
        return dict(_events_by_day(self.path, self.version))

    def _days(self, where: pc.Expression, among: Collection[date] | None = None) -> Iterator[date]:
        """The days with rows `where` it is true, of these or, if `among` is None, of all."""
        if among is not None and not among:
            return
        table = open_table(self.path, self.version)
        with report_lost_files(table):
            for batch in scan(arrow_dataset(table, among), ["day"], where).to_batches():
                days: list[date] = pc.unique(batch["day"]).to_pylist()
                yield from days


@lru_cache(maxsize=64)
def _events_by_day(path: str, version: int) -> Mapping[date, int]:
    counts: dict[date, int] = {}
    actions = pa.table(open_table(path, version).get_add_actions(flatten=True))
    for file in actions.select(["partition.day", "num_records"]).to_pylist():
        rows = _UNKNOWN_ROWS if file["num_records"] is None else file["num_records"]
        counts[file["partition.day"]] = counts.get(file["partition.day"], 0) + rows
    return counts


class LogCleanedError(Exception):
    """Some commits are no longer in the log."""


class DataFile(NamedTuple):
    """A data file of `size` bytes, whose rows are all of one day. `path` is relative to the table.

    `oldest_at` and `newest_at`: when its earliest and its latest row were received, in milliseconds, rounded down. None
    if the log does not say.
    """

    path: str
    size: int
    day: date
    oldest_at: datetime | None
    newest_at: datetime | None

    def may_be_received(self, since: datetime, before: datetime) -> bool:
        """Whether a row may have been received in [since, before)."""
        is_older = self.newest_at is not None and self.newest_at + _LOG_STEP <= since
        is_newer = self.oldest_at is not None and self.oldest_at >= before
        return not (is_older or is_newer)


def appended(path: str, since: int, until: int) -> Iterator[DataFile]:
    """The files that versions `since` < v <= `until` appended, also those that were compacted or vacuumed later.

    LogCleaned or DeltaError if the log does not reach back to `since`.
    """
    first, known = since, {file.path for file in files_at(path, since)}
    for compaction in [*_compactions(path, since, until), until + 1]:
        if compaction - 1 > first:
            yield from (file for file in files_at(path, compaction - 1) if file.path not in known)
        if compaction <= until:
            first, known = compaction, {file.path for file in files_at(path, compaction)}


def files_at(path: str, version: int) -> list[DataFile]:
    """The files of one version."""
    actions = pa.table(open_table(path, version).get_add_actions(flatten=True)).to_pylist()
    return [
        DataFile(
            each["path"],
            each["size_bytes"],
            each["partition.day"],
            each.get("min.received_at"),
            each.get("max.received_at"),
        )
        for each in actions
    ]


def _compactions(path: str, since: int, until: int) -> list[int]:
    """The versions of compactions, since < version <= until, in order.

    delta-rs lists commits newest first, including those after the loaded version, but numbers them backwards from the
    loaded one. So they are numbered here, upwards from the oldest.
    """
    number = until - since
    commits = open_table(path, until).history(number)[::-1][:number] if number > 0 else []
    if not commits:
        return []  # of a path with a glob pattern it lists none at all; such tables are not compacted
    if len(commits) < number:
        raise LogCleanedError(path)
    return [version for version, each in enumerate(commits, since + 1) if each.get("operation") == COMPACTION]
