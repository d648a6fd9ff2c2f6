"""What a power cut has left of a table that lies in a folder: commits that nobody was told of are taken back.

Only the commit of a micro-batch that comes again can be torn, and one that a note is left of (`untold.py`), as every
other one was synced before anybody was told. Its line may be cut short, or name files that are. It is taken back before
an engine reads the table. The micro-batch commits again, as does who asked for something else.
"""

import re
import shutil
from pathlib import Path

import orjson
import pyarrow as pa
import structlog
from pyarrow.parquet import ParquetFile

from master_dataset.delta_history import LAST_CHECKPOINT, MARK, Commit, DeltaHistory
from master_dataset.synced import sums_of, sync_files
from master_dataset.untold import forget, untold

log = structlog.get_logger()
END_OF_PARQUET = b"PAR1"
_NUMBER = re.compile(r"^\.?(\d{20})\.")


def drop_unbegun(table: str) -> None:
    """Forget a table of which nothing but the name is left, so that it is made anew."""
    history = DeltaHistory.of(table)
    commits = list(history.log.glob("*.json"))
    if commits and not any(commit.stat().st_size for commit in commits):
        shutil.rmtree(history.log)
        log.warning("table.torn", table=table, taken_back="all of it")


def take_back_torn(table: str, unfinished: str = "") -> None:
    """Of a table, before an engine has read it: torn lines, checkpoints, and the commits that nobody was told of.

    `unfinished`: the mark of the micro-batch that comes again, if one does.
    """
    history = DeltaHistory.of(table)
    for pattern in ("[0-9]*.checkpoint.*", LAST_CHECKPOINT):
        for file in list(history.log.glob(pattern)):
            _drop_empty(file)
    for path in history.newest_first():
        if _is_torn(path):
            _take_back(history, Commit(path, []))
    for mark in filter(None, (unfinished, *untold(table))):
        if commit := history.marked(mark):  # without one it may be under way
            _take_back_unless_whole(history, commit)
            forget(table, mark)


def _take_back_unless_whole(history: DeltaHistory, commit: Commit) -> None:
    if not all(_is_whole(history.folder / name, size) for name, size in commit.added.items()):
        _take_back(history, commit)
        return
    files = [history.folder / name for name in commit.added]
    for file in (*files, commit.path):
        sums_of(file).unlink(missing_ok=True)  # these may be torn where the file is not, and it has just been read
    sync_files([*files, commit.path], history.folder)


def _is_torn(line: Path) -> bool:
    if not line.stat().st_size:
        return True
    try:
        Commit.read(line)
    except ValueError:
        return True
    return False


def _drop_empty(checkpoint: Path) -> None:
    sums_of(checkpoint).unlink(missing_ok=True)  # they are not synced, and an engine reads it without them
    is_parquet = checkpoint.suffix == ".parquet"
    if not checkpoint.stat().st_size or (is_parquet and checkpoint.read_bytes()[-4:] != END_OF_PARQUET):
        checkpoint.unlink()
        (checkpoint.parent / LAST_CHECKPOINT).unlink(missing_ok=True)  # it may name this one
        log.warning("table.torn", table=str(checkpoint.parent.parent), taken_back=checkpoint.name)


def _is_whole(file: Path, size: int) -> bool:
    """Read to its end, as a disk may have the last block of a file and not the first. It is one micro-batch."""
    if not file.exists() or file.stat().st_size != size:
        return False
    try:
        for _ in ParquetFile(file).iter_batches():
            pass
    except (OSError, pa.ArrowInvalid):
        return False
    return True


def _take_back(history: DeltaHistory, commit: Commit) -> None:
    """A commit that has added nothing stands in its place: numbers have no gap. What was worked out from it goes."""
    info = {name: value for name, value in commit.info.items() if name != MARK} | {"operation": "TAKEN BACK"}
    part = commit.path.with_suffix(".part")
    part.write_bytes(orjson.dumps({"commitInfo": info}) + b"\n")
    part.replace(commit.path)
    for file in history.log.iterdir():
        found = _NUMBER.match(file.name)
        is_worked_out = ".crc" in file.name or ".checkpoint." in file.name
        if found and is_worked_out and int(found[1]) >= commit.number:
            file.unlink()
    (history.log / LAST_CHECKPOINT).unlink(missing_ok=True)  # engines look for one themselves
    sums_of(history.log / LAST_CHECKPOINT).unlink(missing_ok=True)
    sync_files([commit.path], history.folder)
    log.warning("table.torn", table=str(history.folder), taken_back=commit.path.name)
