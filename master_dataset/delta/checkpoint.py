"""Spark's checkpoints, made safe against power cuts on a local disk, and the duration of micro-batches.

Spark plans a micro-batch (`offsets/N`), runs it and records its end (`commits/N`), in files that it does not flush. A
power cut may remove some of them or leave them empty. If the plan of a micro-batch that has written were lost, its
number would be reused for different records, which would be mistaken for a repetition. So the plan is flushed before
anything is written. An empty file is then either the end of a micro-batch or the plan of one that never started.

On an object store a file is complete or does not exist, so nothing of this is needed.
"""

import shutil
from pathlib import Path

import orjson
import structlog
from prometheus_client import Histogram
from pyspark.errors import StreamingQueryException

from master_dataset.delta.fsync import checksum_file, fsync_files
from master_dataset.object_store import local_path
from master_dataset.storage import exists, names_in, read_bytes

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

_SHARED = "CONCURRENT_STREAM_LOG_UPDATE"
"""The class of Spark's error."""

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


def is_shared(error: StreamingQueryException) -> bool:
    """Whether a query ended because another one, in a process that was suspended meanwhile, has the same checkpoint."""
    return _SHARED in str(error)


def mark_of(query: str, number: int) -> str:
    """Return what a commit carries to say which micro-batch wrote it."""
    return f"{query} {number}"


def _numbers(folder: str) -> set[int]:
    return {int(name) for name in names_in(folder) if name.isdecimal()}


def _is_empty(file: Path) -> bool:
    return file.exists() and not file.stat().st_size
