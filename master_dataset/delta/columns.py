"""Columns that a table gains when a newer version of a source has more of them.

The rows that are there have null in a new column, also after a compaction rewrote them. A view reads null as what the
sender did not say. Nothing is rewritten, and columns are never removed or retyped: older rows stay readable.
"""

import pyarrow as pa
import structlog
from deltalake import Schema

from master_dataset.delta.append import REWRITES, committed_once
from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.history import MARK
from master_dataset.storage import is_table, open_table

log = structlog.get_logger()


def add_missing_columns(path: str, schema: pa.Schema) -> None:
    """Add the columns of `schema` that an existing table lacks, in one commit that is on the disk when this returns.

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
