"""A Delta table as a pyarrow dataset, whose files are opened without Python where they lie in a folder."""

from typing import Any
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem


def opened(table: DeltaTable) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """Its newest rows, unread.

    delta-rs would open files by callbacks into Python. pyarrow's threads may still hold one when a command ends, and
    then the process aborts: seen at every fourth `galatea dead-letters list`.
    """
    place = urlsplit(table.table_uri)
    if place.scheme not in {"", "file"}:
        return table.to_pyarrow_dataset()
    return table.to_pyarrow_dataset(filesystem=SubTreeFileSystem(unquote(place.path), LocalFileSystem()))
