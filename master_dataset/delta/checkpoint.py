"""A checkpoint of Spark on a disk of this machine: what a micro-batch rests on is there before anything is written.

Spark plans a micro-batch (`offsets/N`), runs it, and says that it is done (`commits/N`), in files that the system
writes to the disk when it likes. A power cut takes some of them back, or leaves them empty. If the plan of a
micro-batch that has written were gone, its number would come again with other records, which would be taken for a
repetition. So the plan is synced first; then what is empty afterwards is the end of one micro-batch or the plan of one
that never began.

How long each micro-batch of archive and speed takes, as a metric.

Not from Spark's own listener: to give it to Python, py4j looks in every jar for classes that are in none, which was
more than a third of what speed's Java did at 1,000 receipts a second (docs/explanation/benchmarks.md).
"""

import shutil
from pathlib import Path

import orjson
import structlog
from prometheus_client import Histogram

from master_dataset.delta.fsync import checksum_file, fsync_files

PLANS, ENDS, SOURCES, BEGINNING = "offsets", "commits", "sources", "metadata"
log = structlog.get_logger()


def fsync_plan(checkpoint: str, number: int) -> None:
    """Have the plan of this micro-batch on the disk, and that the one before is done."""
    folder = Path(checkpoint.removeprefix("file://"))
    named = (folder / PLANS / str(number), folder / ENDS / str(number - 1), folder / BEGINNING)
    files = (*named, *folder.glob(f"{SOURCES}/*/0"))
    fsync_files([file for file in files if file.exists()], folder)


def drop_incomplete(checkpoint: str) -> None:
    """Remove what a power cut has left empty: Spark would not start with it. Without a beginning there is nothing."""
    folder = Path(checkpoint.removeprefix("file://"))
    if _is_empty(folder / BEGINNING):
        shutil.rmtree(folder)
        log.warning("checkpoint.torn", folder=str(folder), removed="all of it")
        return
    numbered = (file for part in (PLANS, ENDS, f"{SOURCES}/*") for file in folder.glob(f"{part}/[0-9]*"))
    torn = [file for file in numbered if _is_empty(file)]
    for file in torn:
        file.unlink()
        checksum_file(file).unlink(missing_ok=True)
    if torn:
        log.warning("checkpoint.torn", folder=str(folder), removed=[str(file.relative_to(folder)) for file in torn])


def unfinished_mark(checkpoint: str) -> str:
    """The mark of the micro-batch that comes again, its query and number; empty if none does."""
    folder = Path(checkpoint.removeprefix("file://"))
    planned, done = (_numbers(folder / part) for part in (PLANS, ENDS))
    if not planned or max(planned) in done or not (folder / BEGINNING).exists():
        return ""
    return mark_of(orjson.loads((folder / BEGINNING).read_bytes())["id"], max(planned))


def mark_of(query: str, number: int) -> str:
    """What a commit carries that says of which micro-batch it is."""
    return f"{query} {number}"


def _numbers(folder: Path) -> set[int]:
    return {int(file.name) for file in folder.glob("[0-9]*")}


def _is_empty(file: Path) -> bool:
    return file.exists() and not file.stat().st_size


MICRO_BATCH = Histogram(
    "galatea_micro_batch_seconds",
    "How long it took to keep or to count a micro-batch.",
    ("reader",),
    buckets=(0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300),
)
"""By `reader`: archive or speed."""
