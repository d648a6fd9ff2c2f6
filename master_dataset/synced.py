"""What is told as kept is on the disk: the files of a commit, written down to it where the table lies in a folder.

Spark closes its files and leaves them to the system, which writes them within half a minute; a power cut before that
would leave an empty commit behind a position that says that its events are kept.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import orjson
import structlog

log = structlog.get_logger()

NEWEST_COMMITS = 100


def sync(table: str, mark: str) -> None:
    """The newest commit that carries the mark, if one does. A table on an object store is on its disks already."""
    folder = Path(table.removeprefix("file://"))
    history = folder / "_delta_log"
    if not history.exists():
        return
    for commit in _newest_first(history):
        actions = [orjson.loads(line) for line in commit.read_bytes().splitlines()]
        if any(action.get("commitInfo", {}).get("userMetadata") == mark for action in actions):
            files = [folder / unquote(action["add"]["path"]) for action in actions if "add" in action]
            sync_files([*files, commit], folder)
            return


def sync_beginning(table: str) -> None:
    """The commit that has made the table: without it no other one can be read."""
    folder = Path(table.removeprefix("file://"))
    first = _commit(folder / "_delta_log", 0)
    if first.exists():
        sync_files([first], folder)


def drop_unbegun(table: str) -> None:
    """Forget a table of which a power cut has left nothing but the name, so that it is made anew."""
    history = Path(table.removeprefix("file://")) / "_delta_log"
    commits = list(history.glob("*.json"))
    if commits and not any(commit.stat().st_size for commit in commits):
        shutil.rmtree(history)
        log.warning("table.torn", table=table)


def _newest_first(history: Path) -> Iterator[Path]:
    """Commits by number, from that of the last checkpoint on: there may be a hundred thousand before it."""
    checkpoint = history / "_last_checkpoint"
    newest = orjson.loads(checkpoint.read_bytes())["version"] if checkpoint.exists() else 0
    while _commit(history, newest + 1).exists():
        newest += 1
    numbers = range(newest, max(newest - NEWEST_COMMITS, -1), -1)
    yield from (commit for commit in (_commit(history, number) for number in numbers) if commit.exists())


def _commit(history: Path, number: int) -> Path:
    return history / f"{number:020}.json"


def sync_files(files: Sequence[Path], root: Path) -> None:
    """Files below a folder, then each folder that names one, up to the parent of `root`."""
    folders = dict.fromkeys(
        place for file in files for place in file.parents if place == root.parent or root in (place, *place.parents)
    )
    for path in (*files, *folders):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
