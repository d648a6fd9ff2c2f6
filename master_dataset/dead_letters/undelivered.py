"""Dead letters that no archive writes: alerts that an endpoint has rejected, and records that are no alerts of ours.

They are in one Delta table, `undelivered`. Several processes append to it, each without Spark.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from master_dataset.errors import DeadLetterNotStoredError, GalateaError
from master_dataset.parsing.results import Reason

TOPIC = "webhook."
"""Followed by the id of the endpoint: the topic of a rejected alert; partition and offset are those of the alert."""


class UndeliveredRecord(NamedTuple):
    """A record that becomes a dead letter. `sentence` does not quote the value."""

    topic: str
    partition: int
    offset: int
    received_ms: int
    reason: Reason
    sentence: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()

    def row(self) -> dict[str, object]:
        """The row of the table."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "received_at": datetime.fromtimestamp(self.received_ms / 1000, UTC),
            "reason": self.reason.value,
            "field": "",
            "sentence": self.sentence,
            "key": self.key,
            "value": self.value,
            "headers": [{"key": name, "value": value} for name, value in self.headers],
        }


class UndeliveredRecords:
    """The table below one root of the master dataset."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset. The table is created with the first record."""
        self._root = root
        self._is_made = False

    def append(self, records: Sequence[UndeliveredRecord]) -> None:
        """Append these in one commit. After a crash they may be there twice: readers take one per position.

        Raises:
            DeadLetterNotStoredError: They are not stored.
        """
        # Imported with the first record: most processes have none, and the engine takes 0.1 GB.
        import pyarrow as pa  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        from master_dataset.dead_letters.table import UNDELIVERED, create, undelivered_layout  # noqa: PLC0415
        from master_dataset.delta.append import append  # noqa: PLC0415

        path = f"{self._root}/{UNDELIVERED}"
        try:
            if "://" not in path:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            if not self._is_made:
                create(path)
            self._is_made = True
            layout = undelivered_layout()
            append(path, pa.Table.from_pylist([each.row() for each in records], layout.schema), layout)
        except (OSError, ValueError, DeltaError, GalateaError) as error:  # ValueError: a broken log entry
            message = f"the dead letter could not be stored: {type(error).__name__}"
            raise DeadLetterNotStoredError(message, do="galatea doctor") from error
