"""Which files of a source's table were appended between two versions of it, told from the log alone.

Not simply those that the older version does not have: a compaction writes new files of old rows. Walked are the spans
between compactions, each from behind the one to before the next.
"""

from collections.abc import Iterator
from datetime import date, datetime
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

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
