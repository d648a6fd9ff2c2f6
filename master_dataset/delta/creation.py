"""Create the Delta tables of the master dataset, and add the columns that a newer release has.

The rows that are there have null in a new column, also after a compaction rewrote them. A view reads null as what the
sender did not say. Nothing is rewritten, and columns are never removed or retyped: older rows stay readable.
"""

import pyarrow as pa
import structlog
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from master_dataset.delta.append import REWRITES, committed_once
from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.data_files import STATISTICS, TableLayout
from master_dataset.delta.fsync import fsync_first_commit
from master_dataset.delta.history import LOG_PROPERTIES, MARK
from master_dataset.storage import is_table, open_table, options

log = structlog.get_logger()

_CHECKPOINT_INTERVAL = "10"
"""Delta's own default. delta-rs has 100, and reads every entry since the last checkpoint to open a table."""


def create_table(path: str, layout: TableLayout) -> None:
    """Create an append-only table that is on the disk when this returns.

    One that exists gains the columns that it lacks, as in `add_missing_columns`.

    Raises:
        DeltaError: It cannot be created.
        OSError: The disk cannot be written.
    """
    if is_table(path):
        add_missing_columns(path, layout.schema)
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


def add_missing_columns(path: str, schema: pa.Schema) -> None:
    """Add the columns of `schema` that a table lacks, in one commit that is on the disk when this returns.

    Call it as the only process that appends to the table, before it does.

    Args:
        path: Folder or URI of the table; nothing happens if there is none yet.
        schema: All columns that rows will have. Those that the table lacks are nullable.
    """
    if not is_table(path):
        return
    table = open_table(path)
    known = {field.name for field in table.schema().fields}
    missing = [field for field in schema if field.name not in known]
    if not missing:
        return
    fields = list(Schema.from_arrow(pa.schema(missing)).fields)
    with commit_intent(path) as mark, committed_once(path, table.version(), REWRITES, {MARK: mark}) as properties:
        table.alter.add_columns(fields, commit_properties=properties)
    log.info("table.columns_added", table=path, columns=[field.name for field in missing])
