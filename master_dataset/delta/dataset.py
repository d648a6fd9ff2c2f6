"""A Delta table as a pyarrow dataset, whose files are opened without Python where they lie in a folder.

Data files of a table that its log names and that are gone, cut short or unreadable: named, never passed over.

Spark, given the files one by one, reads an empty one as no rows: what a machine leaves that lost its power.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.fs import FileType, LocalFileSystem, SubTreeFileSystem

from master_dataset.errors import MasterFileLostError


def arrow_dataset(table: DeltaTable) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """Its newest rows, unread.

    delta-rs would open files by callbacks into Python. pyarrow's threads may still hold one when a command ends, and
    then the process aborts: seen at every fourth `galatea dead-letters list`.
    """
    place = urlsplit(table.table_uri)
    if place.scheme not in {"", "file"}:
        return table.to_pyarrow_dataset()
    return table.to_pyarrow_dataset(filesystem=SubTreeFileSystem(unquote(place.path), LocalFileSystem()))


UNREADABLE = (OSError, pa.ArrowInvalid, DeltaError)
"""What the libraries raise that read a file."""


def check_files(path: str, sizes: Mapping[str, int]) -> None:
    """MasterFileLostError if a local file of the table has not the size that the log says, in bytes."""
    for found in LocalFileSystem().get_file_info(list(sizes)):
        if found.type != FileType.File:
            raise file_lost(path, found.path, "is gone")
        if found.size != sizes[found.path]:
            raise file_lost(path, found.path, f"has {found.size:,} bytes instead of {sizes[found.path]:,}")


@contextmanager
def report_lost_files(table: DeltaTable) -> Iterator[None]:
    """MasterFileLostError instead of what Arrow or delta-rs raise inside, if a file of the table cannot be read whole."""
    try:
        yield
    except UNREADABLE:
        for fragment in table.to_pyarrow_dataset().get_fragments():
            try:
                for _ in fragment.to_batches():
                    pass
            except UNREADABLE as error:
                raise file_lost(path_of(table), fragment.path, "cannot be read") from error
        raise


def path_of(table: DeltaTable) -> str:
    """Where it lies, as people write it: its own URI is quoted."""
    return unquote(table.table_uri.removeprefix("file://")).rstrip("/")


def file_lost(path: str, file: str, how: str) -> MasterFileLostError:
    """The error about one file of the table at `path`, and what can be done.

    Files that a compaction replaced go after a while: a plan as old as that is no longer good, and nothing is lost.
    """
    name = file.removeprefix(f"{path}/")
    message = f"the data file `{name}` of the table `{path}` {how}"
    if not any(uri.endswith(name) for uri in DeltaTable(path).file_uris()):
        return MasterFileLostError(f"{message}, because it was compacted since", do="begin anew: galatea rebuild")
    do = f"put `{name}` back from a backup of `{path}`, then the same again; without one: docs/how-to/backups.md"
    return MasterFileLostError(message, do=do)
