"""Whoever takes records, as a Protocol of two methods."""

from collections.abc import Sequence
from typing import Protocol

from master_dataset.consuming.record import Record
from master_dataset.consuming.verdict import Refused, Verdict


class Taker(Protocol):
    """Never told of two batches of one key at once."""

    async def take(self, records: Sequence[Record]) -> Verdict:
        """What became of these records, all of one key and in order."""

    async def put_aside(self, record: Record, refused: Refused) -> None:
        """Keep a record that was refused for good; until this returns it counts as under way."""
