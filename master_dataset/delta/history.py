"""The commits of a Delta table that lies in a folder of this machine, read as the files they are."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

import orjson

NEWEST_COMMITS = 100
LAST_CHECKPOINT = "_last_checkpoint"
MARK = "userMetadata"
LOG_PROPERTIES = {"delta.logRetentionDuration": "interval 30 days", "delta.enableExpiredLogCleanup": "false"}
"""Properties of a table: a compaction takes older lines away, behind a checkpoint that is on the disk."""


class Commit(NamedTuple):
    """`path`: of its line in the log, whose name is its number. `actions`: what it did to the table."""

    path: Path
    actions: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Self:
        """ValueError if the line is torn."""
        return cls(path, [orjson.loads(line) for line in path.read_bytes().splitlines()])

    @property
    def number(self) -> int:
        """The version of the table that it made."""
        return int(self.path.stem)

    @property
    def info(self) -> Mapping[str, Any]:
        """Who made it and how."""
        found: Mapping[str, Any] = next((each["commitInfo"] for each in self.actions if "commitInfo" in each), {})
        return found

    @property
    def removed(self) -> set[str]:
        """The files that it took away from the table."""
        return {unquote(each["remove"]["path"]) for each in self.actions if "remove" in each}

    @property
    def added(self) -> Mapping[str, int]:
        """The files that it added, below the table's folder, and their sizes in bytes."""
        return {unquote(each["add"]["path"]): each["add"]["size"] for each in self.actions if "add" in each}


class DeltaHistory:
    """Of one table."""

    def __init__(self, folder: Path) -> None:
        """`folder` of the table, which need not be there."""
        self.folder, self.log = folder, folder / "_delta_log"

    @classmethod
    def of(cls, uri: str) -> Self:
        """Of a table by its URI. One on an object store has no folder here, and so no commits."""
        return cls(Path(uri.removeprefix("file://")))

    def path(self, number: int) -> Path:
        """Where the commit of that number is."""
        return self.log / f"{number:020}.json"

    def newest_first(self) -> Iterator[Path]:
        """Commits by number: the newest hundred. What is before the last checkpoint need not be there."""
        newest = self._newest()
        paths = (self.path(number) for number in range(newest, max(newest - NEWEST_COMMITS, -1), -1))
        yield from (path for path in paths if path.exists())

    def hinted(self) -> int | None:
        """The number of the last checkpoint, as is noted beside it; None without a note that can be read."""
        try:
            version: int = orjson.loads((self.log / LAST_CHECKPOINT).read_bytes())["version"]
        except (FileNotFoundError, ValueError, KeyError):
            return None
        return version

    def checkpoints(self, number: int) -> list[Path]:
        """The files of the checkpoint of that number, if there is one."""
        return sorted(self.log.glob(f"{number:020}.checkpoint*.parquet"))

    def _newest(self) -> int:
        """From the last checkpoint on, as there may be a hundred thousand before it."""
        newest = self.hinted()
        if newest is None or not self.path(newest).exists():
            return max((int(path.stem) for path in self.log.glob("[0-9]*.json")), default=-1)
        while self.path(newest + 1).exists():
            newest += 1
        return newest

    def marked(self, mark: str) -> Commit | None:
        """The newest commit that carries the mark."""
        commits = (Commit.read(path) for path in self.newest_first())
        return next((commit for commit in commits if commit.info.get(MARK) == mark), None)
