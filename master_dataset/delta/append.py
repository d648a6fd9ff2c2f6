"""A commit of a few rows that needs no Spark, on the disk when it is made."""

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from master_dataset.delta.commit_intents import told
from master_dataset.delta.history import MARK

MOST_RETRIES = 1000
"""Of several who append at once one is first, and each of the others tries the next number."""


def append_synced(table: str, rows: pa.Table) -> None:
    """Append them to the table. DeltaError, OSError."""
    with told(table) as mark:
        said = CommitProperties({MARK: mark}, max_commit_retries=MOST_RETRIES)
        write_deltalake(table, rows, mode="append", commit_properties=said)
