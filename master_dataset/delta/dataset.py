"""Read Delta tables with pyarrow, and name the data files that are missing, truncated or unreadable.

A lost file is always an error. Spark, given the files one by one, reads an empty one as no rows, and an empty file is
what a power cut leaves behind.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileType, SubTreeFileSystem

from master_dataset.errors import MasterFileLostError
from master_dataset.object_store import is_remote
from master_dataset.storage import answering, filesystem, open_table

_REQUESTS = 16
"""How many are made to an object store at a time."""
UNREADABLE = (OSError, pa.ArrowInvalid, DeltaError)
"""What Arrow and delta-rs raise when a file cannot be read."""


def arrow_dataset(table: DeltaTable, days: Collection[date] | None = None) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """Return the loaded version of the table as a lazy pyarrow dataset.

    `days`: only the files of these days, at least one, of a table with a folder for each day; None for all. A dataset
    of some files takes less time to make than one of all files with a filter.

    Files are opened by Arrow itself. delta-rs would open them by callbacks into Python; Arrow's threads may still hold
    one when a command ends, and then the process aborts (every fourth `galatea dead-letters list` did).
    """
    files, path = filesystem(path_of(table))
    of_days = [("day", "in", sorted(days))] if days is not None else None
    return table.to_pyarrow_dataset(file_pruning_predicate=of_days, filesystem=SubTreeFileSystem(path, files))


def scan(
    dataset: Any,  # noqa: ANN401 - pyarrow ships no types
    columns: Sequence[str],
    where: Any = None,  # noqa: ANN401 - likewise
) -> Any:  # noqa: ANN401 - likewise
    """Return a scanner of a dataset that is read once.

    It forgets the footer of a file when it has read the file. Arrow would keep them all: more than 200 kB of each file
    with receipts, although the rows of a day may take less.

    Args:
        dataset: Of `arrow_dataset`.
        columns: Names of the columns to read.
        where: An expression of Arrow's that is true of the rows to read; None for all.
    """
    return dataset.scanner(columns=list(columns), filter=where, cache_metadata=False)


def path_of(table: DeltaTable) -> str:
    """Return the path of a table in readable form: its URI is percent-encoded."""
    return unquote(table.table_uri.removeprefix("file://")).rstrip("/")


def check_files(path: str, sizes: Mapping[str, int]) -> None:
    """Compare data files of the table at `path` with the sizes that its log states, see `sizes_of`.

    Raises:
        MasterFileLostError: A file is missing or has another size.
    """
    files, root = filesystem(path)
    places = [f"{root}/{name}" for name in sizes]
    if is_remote(path):
        with answering(path), ThreadPoolExecutor(_REQUESTS) as pool:  # Arrow would make one request after the other
            infos = list(pool.map(files.get_file_info, places))
    else:
        infos = files.get_file_info(places)
    for (name, size), found in zip(sizes.items(), infos, strict=True):
        if found.type != FileType.File:
            raise file_lost(path, name, "is gone")
        if found.size != size:
            raise file_lost(path, name, f"has {found.size:,} bytes instead of {size:,}")


def sizes_of(table: DeltaTable) -> dict[str, int]:
    """Return the data files of the loaded version, relative to the table, and their sizes in bytes."""
    actions = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
    return {unquote(each["path"]): each["size_bytes"] for each in actions}


@contextmanager
def report_lost_files(table: DeltaTable) -> Iterator[None]:
    """Replace errors of Arrow or delta-rs inside the block by one that names the file, if a file cannot be read.

    Raises:
        MasterFileLostError: A file of the table cannot be read to its end; on an object store: is gone or damaged.
        ObjectStoreUnavailableError: An object store did not answer in time, or refused.
    """
    try:
        yield
    except UNREADABLE as error:
        if is_remote(path_of(table)) and isinstance(error, OSError):
            check_files(path_of(table), sizes_of(table))
            with answering(path_of(table)):
                raise
        for fragment in arrow_dataset(table).get_fragments():
            try:
                for _ in fragment.to_batches():
                    pass
            except UNREADABLE as error:
                raise file_lost(path_of(table), fragment.path, "cannot be read") from error
        raise


def file_lost(path: str, file: str, how: str) -> MasterFileLostError:
    """Make the error about one file of the table at `path`. `how` completes the sentence, such as `is gone`.

    Files that a compaction replaced are deleted some days later. A plan older than that has expired; no event is lost.
    """
    name = file.removeprefix(f"{path}/")
    message = f"the data file `{name}` of the table `{path}` {how}"
    if not any(uri.endswith(name) for uri in open_table(path).file_uris()):
        return MasterFileLostError(
            f"{message}, because the table has been compacted since", do="start again: galatea rebuild"
        )
    do = f"put `{name}` back from a backup of `{path}`, then run it again; without a backup, see docs/how-to/backups.md"
    return MasterFileLostError(message, do=do)
