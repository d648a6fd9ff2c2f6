"""A commit of a few rows that needs no Spark, on the disk when it is made."""

from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from master_dataset.synced import sync

MOST_RETRIES = 1000
"""Of several who append at once one is first, and each of the others tries the next number."""


def append_synced(table: str, rows: pa.Table) -> None:
    """Append them to the table. DeltaError, OSError."""
    mark = uuid4().hex
    said = CommitProperties({"userMetadata": mark}, max_commit_retries=MOST_RETRIES)
    write_deltalake(table, rows, mode="append", commit_properties=said)
    sync(table, mark)
