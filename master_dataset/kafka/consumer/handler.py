"""Whoever takes records, as a Protocol of three methods."""

from collections.abc import Sequence
from typing import Protocol

from master_dataset.kafka.consumer.record import Record
from master_dataset.kafka.consumer.verdict import Again, Done, Refused, Verdict


class Taker(Protocol):
    """Never told of two batches of one key at once."""

    def wants(self, record: Record) -> bool:
        """Whether it is handed over at all. What nobody wants waits for nothing and takes no place."""

    async def take(self, records: Sequence[Record]) -> Verdict:
        """What became of these records, all of one key and in order."""

    async def put_aside(self, record: Record, refused: Refused) -> Done | Again:
        """Keep a record that was refused for good; until it is kept it counts as under way."""
