"""What the topics held a moment ago: the id of each, and where its partitions ended, read from Kafka.

Whoever has read up to the ends of a reading has read everything that was received before it began. So readings say how
old an answer is, also where nothing arrives: `max_staleness` compares positions with them.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from master_dataset.errors import BrokerUnavailableError
from serving_layer.caching import SingleFlight, retrieve_exception
from views.control.token import TopicEnds

TAG_SECONDS = 10.0
"""Greatest age of a reading that says which id a topic has."""
_KEPT, _APART_SECONDS = 64, 0.25
"""How many readings are kept, and how far apart they are at least."""


class LogReading(NamedTuple):
    """One reading. `read_at`: monotonic seconds, before Kafka was asked. `topics`: by name."""

    read_at: float
    topics: Mapping[str, TopicEnds]


class TopicLogs:
    """Reads the topics of all sources. Belongs to one event loop."""

    def __init__(self, read: Callable[[], Awaitable[Mapping[str, TopicEnds]]], clock: Callable[[], float]) -> None:
        """Nothing is read yet.

        Args:
            read: asks Kafka; raises BrokerUnavailableError.
            clock: monotonic seconds.
        """
        self._ask, self._clock = read, clock
        self._reads: SingleFlight[LogReading] = SingleFlight()
        self._newest: LogReading | None = None
        self._kept: deque[LogReading] = deque(maxlen=_KEPT)
        self._ahead: asyncio.Task[LogReading] | None = None

    async def read(self) -> LogReading:
        """A reading that begins after this call. BrokerUnavailableError."""
        return await self._reads.read(None, self._read)

    async def since(self, oldest: float) -> Sequence[LogReading]:
        """The readings that began at that time or later; at least one. BrokerUnavailableError.

        Before the newest of them is too old for the next call of this kind, another one is begun.
        """
        newest = [self._newest] if self._newest is not None else []
        found = [each for each in (*self._kept, *newest) if each.read_at >= oldest]
        if not found:
            return [await self.read()]
        now, last = self._clock(), found[-1].read_at
        if now - last >= _APART_SECONDS and last < (oldest + now) / 2:
            self._read_ahead()
        return found

    async def tag(self, topic: str) -> str | None:
        """The tag of a topic's id; None if Kafka does not say it, and never has.

        While Kafka does not answer, it is the one that it said last: events of another topic would not be acknowledged
        under it.
        """
        newest = self._newest
        if newest is None or topic not in newest.topics:
            try:
                newest = await self.read()
            except BrokerUnavailableError:
                return None
        elif self._clock() - newest.read_at > TAG_SECONDS:
            self._read_ahead()
        return newest.topics[topic].tag if topic in newest.topics else None

    def _read_ahead(self) -> None:
        if self._ahead is None or self._ahead.done():
            self._ahead = asyncio.ensure_future(self.read())
            self._ahead.add_done_callback(retrieve_exception)

    async def _read(self) -> LogReading:
        began = self._clock()
        self._newest = LogReading(began, await self._ask())
        if not self._kept or began - self._kept[-1].read_at >= _APART_SECONDS:
            self._kept.append(self._newest)
        return self._newest
