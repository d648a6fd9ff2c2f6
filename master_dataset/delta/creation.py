"""Create the Delta tables of the master dataset."""

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from master_dataset.delta.data_files import STATISTICS, TableLayout
from master_dataset.delta.fsync import fsync_first_commit
from master_dataset.delta.history import LOG_PROPERTIES
from master_dataset.storage import is_table, options

_CHECKPOINT_INTERVAL = "10"
"""Delta's own default. delta-rs has 100, and reads every entry since the last checkpoint to open a table."""


def create_table(path: str, layout: TableLayout) -> None:
    """Create an append-only table that is on the disk when this returns. One that exists stays as it is.

    Raises:
        DeltaError: It cannot be created.
        OSError: The disk cannot be written.
    """
    if is_table(path):
        return
    properties = LOG_PROPERTIES | {"delta.appendOnly": "true", "delta.checkpointInterval": _CHECKPOINT_INTERVAL}
    if STATISTICS in layout.schema.names:  # each column has a cost
        properties |= {"delta.dataSkippingStatsColumns": STATISTICS}
    try:
        DeltaTable.create(
            path,
            Schema.from_arrow(layout.schema),
            mode="ignore",
            partition_by=layout.partition_columns,
            configuration=properties,
            storage_options=options(path),
        )
    except DeltaError:
        if not is_table(path):  # else another process was first, or the answer was lost
            raise
    fsync_first_commit(path)
