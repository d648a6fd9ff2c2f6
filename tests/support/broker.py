"""A broker in memory: what it was sent, and what it says of it."""

import asyncio
from collections.abc import Callable, Sequence

from master_dataset.kafka.producer import DeliveryStatus, ProducerRecord


def takes_all(_: ProducerRecord) -> DeliveryStatus | None:
    return DeliveryStatus.ACKNOWLEDGED


class WorldBroker:
    """Carrier. `says`: the fate of a record, None if it never comes. `is_full`: there is no room for any."""

    def __init__(self) -> None:
        self.topics: dict[str, list[ProducerRecord]] = {}
        self.says: Callable[[ProducerRecord], DeliveryStatus | None] = takes_all
        self.is_full = False

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> Sequence[asyncio.Future[DeliveryStatus]]:
        if self.is_full:
            raise BufferError
        self.topics.setdefault(topic, []).extend(records)
        return [self._told(self.says(record)) for record in records]

    def values(self, topic: str) -> list[bytes]:
        """What stands in the topic, in order."""
        return [record.value for record in self.topics.get(topic, [])]

    def _told(self, fate: DeliveryStatus | None) -> asyncio.Future[DeliveryStatus]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[DeliveryStatus] = loop.create_future()
        if fate is not None:
            loop.call_soon(future.set_result, fate)
        return future
