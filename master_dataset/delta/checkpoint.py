"""Spark's checkpoints, made safe against power cuts on a local disk, and the duration of micro-batches.

Spark plans a micro-batch (`offsets/N`), runs it and records its end (`commits/N`), in files that it does not flush. A
power cut may remove some of them or leave them empty. If the plan of a micro-batch that has written were lost, its
number would be reused for different records, which would be mistaken for a repetition. So the plan is flushed before
anything is written. An empty file is then either the end of a micro-batch or the plan of one that never started.

On an object store a file is complete or does not exist, so nothing of this is needed.

Every process that runs a query does so with a checkpoint of its own, a copy of the last one (`adopt`).
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import orjson
import structlog
from prometheus_client import Histogram

from master_dataset.delta.fsync import checksum_file, fsync_files
from master_dataset.object_store import local_path
from master_dataset.storage import delete_file, delete_folder, exists, names_in, read_bytes, write_bytes

PLANS, ENDS, SOURCES, METADATA = "offsets", "commits", "sources", "metadata"
"""Names that Spark gives to the parts of a checkpoint."""

# Not from Spark's own listener: to pass it to Python, py4j searches every jar for classes that do not exist, which took
# more than a third of the speed layer's Java time at 1,000 receipts a second (docs/explanation/benchmarks.md).
MICRO_BATCH = Histogram(
    "galatea_micro_batch_seconds",
    "How long it took to archive or to count a micro-batch.",
    ("reader",),
    buckets=(0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300),
)
"""By `reader`: archive or speed."""

_LOG_VERSION = "v1"
_NO_DATA = "-"
"""What Spark writes for a source that has never had a record."""

_COPIED = 3
"""How many plans and ends a copy has: Spark continues after the last plan, and reads the one before it."""

log = structlog.get_logger()


def fsync_plan(checkpoint: str, number: int) -> None:
    """Flush the plan of this micro-batch, and the end of the one before. Nothing to do on an object store."""
    folder = local_path(checkpoint)
    if folder is None:
        return
    named = (folder / PLANS / str(number), folder / ENDS / str(number - 1), folder / METADATA)
    files = (*named, *folder.glob(f"{SOURCES}/*/0"))
    fsync_files([file for file in files if file.exists()], folder)


def drop_incomplete(checkpoint: str) -> None:
    """Remove files that a power cut left empty: Spark would not start with them.

    Without metadata, nothing is usable. Nothing to do on an object store.
    """
    folder = local_path(checkpoint)
    if folder is None:
        return
    if _is_empty(folder / METADATA):
        shutil.rmtree(folder)
        log.warning("checkpoint.incomplete", folder=str(folder), removed="all of it")
        return
    numbered = (file for part in (PLANS, ENDS, f"{SOURCES}/*") for file in folder.glob(f"{part}/[0-9]*"))
    empty = [file for file in numbered if _is_empty(file)]
    for file in empty:
        file.unlink()
        checksum_file(file).unlink(missing_ok=True)
    if empty:
        removed = [str(file.relative_to(folder)) for file in empty]
        log.warning("checkpoint.incomplete", folder=str(folder), removed=removed)


def unfinished_mark(checkpoint: str) -> str:
    """Return the mark of the micro-batch that Spark will repeat; empty if it repeats none."""
    planned, done = (_numbers(f"{checkpoint}/{part}") for part in (PLANS, ENDS))
    if not planned or max(planned) in done or not exists(f"{checkpoint}/{METADATA}"):
        return ""
    return mark_of(orjson.loads(read_bytes(f"{checkpoint}/{METADATA}"))["id"], max(planned))


def checkpoints_in(folder: str) -> list[str]:
    """Return the checkpoints of a stream, of which `folder` has one for each process that ran it.

    In the former layout there was only one, the folder itself.
    """
    return [each for each in (folder, *_inner(folder)) if exists(f"{each}/{METADATA}")]


def _inner(folder: str) -> list[str]:
    own = (PLANS, ENDS, SOURCES, METADATA)
    return [f"{folder}/{name}" for name in names_in(folder) if name not in own and not name.startswith(".")]


def furthest(folder: str, planned: tuple[int, Mapping[str, Mapping[int, int]]] | None = None) -> str | None:
    """Return the checkpoint of a stream whose plans go furthest; None if there is none.

    `planned`: one that has this plan, a number and end offsets, is preferred.
    """

    def rank(checkpoint: str) -> tuple[bool, int, bool, int]:
        number = last_plan(checkpoint)
        ends = read_ends(checkpoint, number) if number >= 0 else {}
        has_ended = number in _numbers(f"{checkpoint}/{ENDS}")
        offsets = sum(offset for partitions in ends.values() for offset in partitions.values())
        return planned is not None and _has_plan(checkpoint, *planned), number, has_ended, offsets

    return max(checkpoints_in(folder), key=rank, default=None)


def _has_plan(checkpoint: str, number: int, ends: Mapping[str, Mapping[int, int]]) -> bool:
    return number in _numbers(f"{checkpoint}/{PLANS}") and read_ends(checkpoint, number) == ends


def last_plan(checkpoint: str) -> int:
    """Return the number of the last micro-batch that was planned; -1: none."""
    return max(_numbers(f"{checkpoint}/{PLANS}"), default=-1)


def adopt(folder: str, found: str | None) -> str:
    """Return a checkpoint that only this process has, and that goes on where `found` is, one of `checkpoints_in`.

    A process that was taken over, and goes on because it was only suspended, keeps its own: two queries with one
    checkpoint could each plan the same micro-batch with other records, and one would end the other's. Those that are
    far behind `found` are removed, also copies that were not finished.

    One of the former layout is moved. A process of the release before would otherwise resume it after a return to that
    release, plan its next micro-batch with other records than this process did, and find that it has been written.
    """
    adopted = f"{folder}/{uuid4()}"
    if found is None:
        return adopted
    _copy(found, adopted)
    reached = last_plan(found)
    if found == folder:
        with suppress(OSError):  # as below
            _remove_outer(folder)
    for other in (*_inner(folder), folder):
        if last_plan(other) < reached - 1 and other not in (found, adopted):
            with suppress(OSError):  # a process that was suspended may still write there
                _remove_outer(folder) if other == folder else delete_folder(other)
    return adopted


def unfinished_marks(folder: str) -> set[str]:
    """Return the marks of micro-batches of a stream that may be written in part: planned last, and ended nowhere."""
    found = checkpoints_in(folder)
    ended = {number for checkpoint in found for number in _numbers(f"{checkpoint}/{ENDS}")}
    last = {checkpoint: last_plan(checkpoint) for checkpoint in found}
    recent = max(last.values(), default=0) - 1  # what is older was ended, and its files may have been compacted
    return {unfinished_mark(each) for each, number in last.items() if number not in ended and number >= recent} - {""}


def _copy(found: str, adopted: str) -> None:
    """Copy what Spark needs, the metadata last, because there is no checkpoint without it."""
    numbered = [
        f"{part}/{number}" for part in (ENDS, PLANS) for number in sorted(_numbers(f"{found}/{part}"))[-_COPIED:]
    ]
    inner = [f"{SOURCES}/{name}/0" for name in names_in(f"{found}/{SOURCES}") if name.isdecimal()]
    asked = [name for name in inner if exists(f"{found}/{name}")]  # else Kafka was away when the query first asked it
    names = [*numbered, *asked, METADATA]
    for name in names:
        write_bytes(f"{adopted}/{name}", read_bytes(f"{found}/{name}"))
    if (own := local_path(adopted)) is not None:
        fsync_files([own / name for name in names], own)


def _remove_outer(checkpoint: str) -> None:
    """Remove a checkpoint, but no others that are in its folder."""
    if exists(f"{checkpoint}/{METADATA}"):
        delete_file(f"{checkpoint}/{METADATA}")
    for part in (PLANS, ENDS, SOURCES):
        if exists(f"{checkpoint}/{part}"):
            delete_folder(f"{checkpoint}/{part}")


def read_ends(checkpoint: str, micro_batch: int) -> dict[str, dict[int, int]]:
    """Read the end offsets of a micro-batch from Spark's offset log. OSError."""
    return parse_ends(read_bytes(f"{checkpoint}/offsets/{micro_batch}").decode())


def parse_ends(offset_log: str) -> dict[str, dict[int, int]]:
    """Parse an entry of Spark's offset log: a version, metadata, then a line per source.

    ValueError for another version than the one that Spark 4.2 writes.
    """
    version, _, *sources = offset_log.splitlines()
    if version != _LOG_VERSION:
        raise ValueError(f"Spark's offset log says `{version}`, known is `{_LOG_VERSION}`")
    lines = (orjson.loads(line) for line in sources if line != _NO_DATA)
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for line in lines
        for topic, partitions in line.items()
    }


def mark_of(query: str, number: int) -> str:
    """Return what a commit carries to say which micro-batch wrote it."""
    return f"{query} {number}"


def _numbers(folder: str) -> set[int]:
    return {int(name) for name in names_in(folder) if name.isdecimal()}


def _is_empty(file: Path) -> bool:
    return file.exists() and not file.stat().st_size
