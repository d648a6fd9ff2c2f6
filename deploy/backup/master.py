"""The master dataset by reference: which version of each table a backup belongs to, and whether it is there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from master_dataset.dead_letters.replay_history import REPLAYS
from master_dataset.dead_letters.table import TABLES as DEAD_LETTERS
from master_dataset.delta.dataset import check_files, sizes_of
from master_dataset.delta.history import Commit, DeltaHistory
from master_dataset.errors import MasterFileLostError, OperatorError
from master_dataset.object_store import is_remote
from master_dataset.sources import registered_sources
from master_dataset.storage import is_table, open_table

FILES = pa.schema([("path", pa.string()), ("size_bytes", pa.int64())])
"""The columns of a list of data files. `path`: relative to the folder of the table."""
_SHOWN = 3
_DO = "put the master dataset back from its own copy, with the `_delta_log` of each table, then restore again"


@dataclass(frozen=True)
class TableVersion:
    """One table at one version. `sizes`: data file, relative to its folder, to size in bytes."""

    id: str
    version: int
    sizes: Mapping[str, int]

    @property
    def listed(self) -> pa.Table:
        """Its files as a table."""
        ordered = sorted(self.sizes.items())
        return pa.table([[path for path, _ in ordered], [size for _, size in ordered]], schema=FILES)


def master_names() -> list[str]:
    """Return the folders of all tables that a master dataset may have."""
    return [*registered_sources(), *DEAD_LETTERS, REPLAYS]


def current_versions(root: str) -> Iterator[tuple[str, TableVersion]]:
    """Yield each table of the master dataset below `root` as it is now."""
    for name in master_names():
        if is_table(path := f"{root}/{name}"):
            yield name, table_version(path)


def table_version(path: str) -> TableVersion:
    """Return the current version of a table."""
    table = open_table(path)
    return TableVersion(str(table.metadata().id), table.version(), sizes_of(table))


def check_table(path: str, recorded: TableVersion) -> TableVersion:
    """Check that a table is the recorded one, at that version or a later one, with all its data files.

    Args:
        path: Folder or URI of the table.
        recorded: What a backup says of it.

    Returns:
        The table as it is now.

    Raises:
        OperatorError: It is missing, another table, or older.
        MasterFileLostError: A data file is missing or has another size.
    """
    if not is_table(path):
        raise OperatorError(f"the backup needs the table `{path}`, which is not there", do=_DO)
    now = table_version(path)
    if now.id != recorded.id:
        message = f"the table `{path}` is not the one that the backup belongs to: its id is `{now.id}`"
        raise OperatorError(message, do=f"set GALATEA_MASTER_URI to the master dataset of the backup, or {_DO}")
    if now.version < recorded.version:
        message = f"the table `{path}` is at version {now.version}, and the backup needs version {recorded.version}"
        raise OperatorError(f"{message} or a later one: events would be missing", do=_DO)
    check_files(path, now.sizes)
    if not is_remote(path) and (lost := _vanished(path, recorded, now)):
        shown = ", ".join(f"`{name}`" for name in lost[:_SHOWN])
        message = f"the table `{path}` does not name {len(lost)} data files of the backup any more, such as {shown}"
        raise MasterFileLostError(message, do=_DO)
    return now


def _vanished(path: str, recorded: TableVersion, now: TableVersion) -> list[str]:
    """Recorded files that are gone although no later commit has removed them; none if the log does not reach back."""
    missing = recorded.sizes.keys() - now.sizes.keys()
    if not missing:
        return []
    history = DeltaHistory.of(path)
    for number in range(recorded.version + 1, now.version + 1):
        if not (entry := history.path(number)).exists():
            return []
        missing -= Commit.read(entry).removed
    return sorted(missing)
