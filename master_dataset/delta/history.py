"""The commit log of a Delta table in a local folder, read as the files it consists of."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

import orjson

NEWEST_COMMITS = 100
"""How many commits are searched for a mark."""
LAST_CHECKPOINT = "_last_checkpoint"
MARK = "userMetadata"
LOG_PROPERTIES = {"delta.logRetentionDuration": "interval 30 days", "delta.enableExpiredLogCleanup": "false"}
"""Table properties: only a compaction deletes old log entries, behind a checkpoint that is on the disk."""


class Commit(NamedTuple):
    """One version of a table. `path`: its log entry, named by its number. `actions`: those of Delta's protocol."""

    path: Path
    actions: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a log entry. ValueError if it is incomplete."""
        return cls(path, [orjson.loads(line) for line in path.read_bytes().splitlines()])

    @property
    def number(self) -> int:
        """The version of the table."""
        return int(self.path.stem)

    @property
    def info(self) -> Mapping[str, Any]:
        """Delta's `commitInfo`; empty if it has none."""
        found: Mapping[str, Any] = next((each["commitInfo"] for each in self.actions if "commitInfo" in each), {})
        return found

    @property
    def removed(self) -> set[str]:
        """Data files that it removed."""
        return {unquote(each["remove"]["path"]) for each in self.actions if "remove" in each}

    @property
    def added(self) -> Mapping[str, int]:
        """Data files that it added, relative to the table, and their sizes in bytes."""
        return {unquote(each["add"]["path"]): each["add"]["size"] for each in self.actions if "add" in each}


class DeltaHistory:
    """The log of one table."""

    def __init__(self, folder: Path) -> None:
        """`folder` of the table, which need not exist."""
        self.folder, self.log = folder, folder / "_delta_log"

    @classmethod
    def of(cls, uri: str) -> Self:
        """The history of a table by its URI. A table on an object store has no local folder, and so no commits."""
        return cls(Path(uri.removeprefix("file://")))

    def path(self, number: int) -> Path:
        """The log entry of that version."""
        return self.log / f"{number:020}.json"

    def newest_first(self) -> Iterator[Path]:
        """The newest log entries, at most NEWEST_COMMITS. Entries before the last checkpoint may be missing."""
        newest = self._newest()
        paths = (self.path(number) for number in range(newest, max(newest - NEWEST_COMMITS, -1), -1))
        yield from (path for path in paths if path.exists())

    def last_checkpoint(self) -> int | None:
        """The version of the last checkpoint, from `_last_checkpoint`; None if that file is missing or unreadable."""
        try:
            version: int = orjson.loads((self.log / LAST_CHECKPOINT).read_bytes())["version"]
        except (FileNotFoundError, ValueError, KeyError):
            return None
        return version

    def checkpoints(self, number: int) -> list[Path]:
        """The files of the checkpoint of that version, if there is one."""
        return sorted(self.log.glob(f"{number:020}.checkpoint*.parquet"))

    def _newest(self) -> int:
        """Searched from the last checkpoint on: there may be a hundred thousand entries before it."""
        newest = self.last_checkpoint()
        if newest is None or not self.path(newest).exists():
            return max((int(path.stem) for path in self.log.glob("[0-9]*.json")), default=-1)
        while self.path(newest + 1).exists():
            newest += 1
        return newest

    def marked(self, mark: str) -> Commit | None:
        """The newest commit that carries the mark; None if none of the newest does."""
        commits = (Commit.read(path) for path in self.newest_first())
        return next((commit for commit in commits if commit.info.get(MARK) == mark), None)
