"""`undelivered`: alerts that an endpoint has refused for good, as dead letters beside those of events.

One appender writes it: the dispatcher. The topic of such a letter is its endpoint's, so what two endpoints refuse is
two letters.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from master_dataset.errors import Unavailable
from master_dataset.kafka.consumer import Record
from master_dataset.parsing.dead_letter import Reason
from master_dataset.webhooks.endpoint import Endpoint


class LetterNotKept(Unavailable):
    """A dead letter could not be written; what it is about waits until it can."""


class Letter(NamedTuple):
    """An alert that an endpoint has refused. `why`: one sentence without its end."""

    endpoint: Endpoint
    record: Record
    why: str

    def row(self, topics: str) -> dict[str, object]:
        """As a dead letter. `topics`: what the topics of such letters begin with."""
        record = self.record
        return {
            "topic": f"{topics}{self.endpoint.id}",
            "partition": record.partition,
            "offset": record.offset,
            "received_at": datetime.fromtimestamp(record.received_ms / 1000, UTC),
            "reason": Reason.ALERT_DELIVERY_REJECTED.value,
            "field": "",
            "sentence": f"{self.why[0].upper()}{self.why[1:]}.",
            "key": record.key,
            "value": record.value,
            "headers": [],
        }


class UndeliveredTable:
    """Undelivered, in Delta, without Spark. Belongs to one event loop."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._root = root
        self._thread = ThreadPoolExecutor(1, "undelivered")
        self._one_commit = asyncio.Lock()
        self._waiting: list[Letter] = []
        self._next: asyncio.Task[None] | None = None
        self._is_made = False

    async def keep(self, endpoint: Endpoint, record: Record, why: str) -> None:
        """Append one. Kept twice after a crash, it is one: readers take a row of each place. LetterNotKept."""
        self._waiting.append(Letter(endpoint, record, why))
        if self._next is None:
            self._next = asyncio.ensure_future(self._append_all())
        await asyncio.shield(self._next)  # whoever waits no longer takes nothing from the others

    async def _append_all(self) -> None:
        """What has come until the commit before is done goes into the next one."""
        async with self._one_commit:
            letters, self._waiting, self._next = self._waiting, [], None
            await asyncio.get_running_loop().run_in_executor(self._thread, self.append, letters)

    def append(self, letters: Sequence[Letter]) -> None:
        """Keep them, in one commit. LetterNotKept."""
        # Loaded with the first letter: an engine of 0.1 GB would wait for it in vain wherever nothing is refused.
        import pyarrow as pa  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        from master_dataset.delta.append import append_synced  # noqa: PLC0415
        from master_dataset.webhooks.undelivered import TOPIC, UNDELIVERED, create, schema  # noqa: PLC0415

        path = f"{self._root}/{UNDELIVERED}"
        try:
            if "://" not in path:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            if not self._is_made:
                create(path)
            self._is_made = True
            rows = pa.Table.from_pylist([each.row(TOPIC) for each in letters], schema())
            append_synced(path, rows)
        except (OSError, ValueError, DeltaError) as error:  # of a line that cannot be read
            message = f"the dead letter could not be kept: {type(error).__name__}"
            raise LetterNotKept(message, do="galatea doctor") from error
