"""The data files of a Delta table in an order of time, opened some at a time: a few newest rows cost a few files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from master_dataset.delta.dataset import opened

FIRST_FILES, MORE = 16, 4
"""So many files are opened at once, and how many times as many the next time."""
BEGINNING = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class File:
    """`oldest_at`, `newest_at`: of the column `received_at`, as the table's log says, or anything if it does not."""

    fragment: Any
    rows: int
    oldest_at: datetime
    newest_at: datetime


@dataclass(frozen=True)
class Files:
    """Those of one version of a table that may hold what is asked for."""

    table: DeltaTable
    dataset: Any
    every: Sequence[File]

    @property
    def rows(self) -> int:
        """How many rows they hold at most."""
        return sum(each.rows for each in self.every)

    @property
    def whole(self) -> Any:  # noqa: ANN401 - pyarrow ships no types
        """All of them, as one dataset."""
        return self.some(self.every)

    def some(self, files: Sequence[File]) -> Any:  # noqa: ANN401 - likewise
        """These alone, as one dataset."""
        whole = self.dataset
        return ds.FileSystemDataset([each.fragment for each in files], whole.schema, whole.format, whole.filesystem)

    def in_time(self, *, oldest_first: bool) -> Iterator[tuple[Sequence[File], datetime | None]]:
        """More and more files at once. With each: the best time that any file behind them may hold, None: none is."""
        left = sorted(self.every, key=lambda file: file.oldest_at if oldest_first else file.newest_at)
        left = left if oldest_first else left[::-1]
        size = FIRST_FILES
        while left:
            taken, left = left[:size], left[size:]
            size *= MORE
            rest = (left[0].oldest_at if oldest_first else left[0].newest_at) if left else None
            yield taken, rest


def files_of(path: str, where: Any) -> Files | None:  # noqa: ANN401 - likewise
    """Of the newest version; None if there is no such table. `where`: an expression, or None for everything."""
    if not DeltaTable.is_deltatable(path):
        return None
    table = DeltaTable(path)
    log = {unquote(row["path"]): row for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()}
    dataset = opened(table)
    return Files(table, dataset, [_file(fragment, log) for fragment in dataset.get_fragments(where)])


def _file(fragment: Any, log: dict[str, dict[str, Any]]) -> File:  # noqa: ANN401 - likewise
    row = log.get(unquote(fragment.path), {})
    oldest, newest = row.get("min.received_at"), row.get("max.received_at")
    # The log may cut a time to milliseconds, so that the newest row lies a little behind it.
    return File(
        fragment,
        row.get("num_records") or 0,
        oldest or BEGINNING,
        END if newest is None else newest.replace(microsecond=newest.microsecond // 1000 * 1000 + 999),
    )
