"""`undelivered`: alerts that an endpoint has refused for good, as dead letters beside those of events.

One appender writes it: the dispatcher. The topic of such a letter is its endpoint's, so what two endpoints refuse is
two letters.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from master_dataset.consuming import Record
from master_dataset.endpoint import Endpoint
from master_dataset.parsing.dead_letter import Reason
from master_dataset.undelivered import TOPIC, UNDELIVERED, schema


class UndeliveredTable:
    """Undelivered, in Delta, without Spark."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._path = f"{root}/{UNDELIVERED}"

    async def keep(self, endpoint: Endpoint, record: Record, why: str) -> None:
        """Append one. Kept twice after a crash, it is one: readers take a row of each place."""
        await asyncio.to_thread(self._append, endpoint, record, why)

    def _append(self, endpoint: Endpoint, record: Record, why: str) -> None:
        row = {
            "topic": f"{TOPIC}{endpoint.id}", "partition": record.partition, "offset": record.offset,
            "received_at": datetime.fromtimestamp(record.received_ms / 1000, UTC),
            "reason": Reason.ALERT_DELIVERY_REJECTED.value, "field": "", "sentence": f"{why[0].upper()}{why[1:]}.",
            "key": record.key, "value": record.value, "headers": [],
        }  # fmt: skip
        if "://" not in self._path:
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(self._path, pa.Table.from_pylist([row], schema()), mode="append")
