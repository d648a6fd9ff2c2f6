"""Alerts that an endpoint has refused for good: dead letters of the way out."""

import pyarrow as pa
from deltalake import DeltaTable, Schema

from master_dataset.delta.fsync import sync_beginning
from master_dataset.delta.history import KEPT
from master_dataset.delta.incomplete_commits import take_back_torn
from master_dataset.parsing.rows import BYTES, PLACE, REFUSAL

UNDELIVERED = "undelivered"
TOPIC = "webhook."
"""With the endpoint's id behind it, the topic of such a letter; partition and offset are those of the alert."""


def schema() -> pa.Schema:
    """The columns of a dead letter, as the archive has them."""
    return pa.schema([*PLACE, *REFUSAL, *BYTES])


def create(path: str) -> None:
    """Make the table, unless it is there. Each endpoint has a partition. DeltaError, OSError."""
    take_back_torn(path)
    if not DeltaTable.is_deltatable(path):
        DeltaTable.create(
            path,
            Schema.from_arrow(schema()),
            partition_by=["topic"],
            configuration=KEPT | {"delta.appendOnly": "true"},
        )
        sync_beginning(path)
