"""`undelivered`: alerts that an endpoint has refused for good, as dead letters beside those of events.

One appender writes it: the dispatcher. The topic of such a letter is its endpoint's, so what two endpoints refuse is
two letters.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from master_dataset.consuming import Record
from master_dataset.endpoint import Endpoint
from master_dataset.errors import Unavailable
from master_dataset.parsing.dead_letter import Reason


class LetterNotKept(Unavailable):
    """A dead letter could not be written; what it is about waits until it can."""


class UndeliveredTable:
    """Undelivered, in Delta, without Spark."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._root = root
        self._thread = ThreadPoolExecutor(1, "undelivered")  # one after the other: two commits at once would collide

    async def keep(self, endpoint: Endpoint, record: Record, why: str) -> None:
        """Append one. Kept twice after a crash, it is one: readers take a row of each place. LetterNotKept."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._append, endpoint, record, why)

    def _append(self, endpoint: Endpoint, record: Record, why: str) -> None:
        # Loaded with the first letter: an engine of 0.1 GB would wait for it in vain wherever nothing is refused.
        import pyarrow as pa  # noqa: PLC0415
        from deltalake import write_deltalake  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        from master_dataset.undelivered import TOPIC, UNDELIVERED, schema  # noqa: PLC0415

        row = {
            "topic": f"{TOPIC}{endpoint.id}", "partition": record.partition, "offset": record.offset,
            "received_at": datetime.fromtimestamp(record.received_ms / 1000, UTC),
            "reason": Reason.ALERT_DELIVERY_REJECTED.value, "field": "", "sentence": f"{why[0].upper()}{why[1:]}.",
            "key": record.key, "value": record.value, "headers": [],
        }  # fmt: skip
        path = f"{self._root}/{UNDELIVERED}"
        try:
            if "://" not in path:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_deltalake(path, pa.Table.from_pylist([row], schema()), mode="append")
        except (OSError, DeltaError) as error:
            message = f"the dead letter could not be kept: {type(error).__name__}"
            raise LetterNotKept(message, do="galatea doctor") from error
