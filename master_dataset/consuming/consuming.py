"""One member of a consumer group that hands records over: in order for each key, several keys at once, bounded.

It commits only what is done without a gap, so a record may come twice and is never left out. When too many wait it
pauses its partitions, and goes on polling, so that the group does not take it for dead.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from master_dataset.consuming.blocked import Behind, Blocked
from master_dataset.consuming.lane import Lane
from master_dataset.consuming.prefix import Prefix
from master_dataset.consuming.record import Record
from master_dataset.consuming.taker import Taker
from master_dataset.errors import BrokerUnavailable

log = structlog.get_logger()
POLL_SECONDS, COMMIT_SECONDS = 0.1, 1.0
_AT_ONCE = 500
_THREADS = 2
"""Of each member its own: one polls, one commits. Others that are stuck take none of them."""
Place = tuple[str, int]


class Limits(NamedTuple):
    """`under_way`: calls at once. `waiting`: records taken from the broker and not done. `batch`: records of one call.

    `longest_wait`: seconds between two tries, at most. `leave`: seconds that calls under way have at the end.
    """

    under_way: int = 8
    waiting: int = 1000
    batch: int = 500
    longest_wait: float = 60.0
    leave: float = 10.0


USUAL = Limits()


class Consuming:
    """Belongs to one event loop, and runs once."""

    def __init__(
        self, settings: dict[str, Any], topics: Iterable[str], taker: Taker, limits: Limits = USUAL,
        connect: Callable[[dict[str, Any]], Any] = Consumer,
    ) -> None:  # fmt: skip
        """`settings`: of librdkafka: servers and group, and what is particular."""
        own = {
            "enable.auto.commit": False, "isolation.level": "read_committed", "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }  # fmt: skip
        self._consumer = connect({**settings, **own})
        self._threads = ThreadPoolExecutor(_THREADS, "consuming")
        self._topics, self._taker, self._limits = list(topics), taker, limits
        self._places = asyncio.Semaphore(limits.under_way)
        self._lanes: dict[tuple[Place, bytes], Lane] = {}
        self._tasks: dict[tuple[Place, bytes], asyncio.Task[None]] = {}
        self._prefixes: dict[Place, Prefix] = {}
        self._committed: dict[Place, int] = {}
        self._unread_from: dict[Place, int] = {}
        self._stopping, self._one_commit = asyncio.Event(), asyncio.Lock()
        self._failed: BaseException | None = None
        self.waiting, self.is_paused = 0, False

    @property
    def failing_since(self) -> float | None:
        """Since when, in seconds since 1970, a key is tried again and again; None if none is."""
        return min((lane.failing_since for lane in self._lanes.values() if lane.failing_since), default=None)

    @property
    def blocked(self) -> list[Blocked]:
        """The keys that are tried again and again, the longest first."""
        found = [blocked for lane in self._lanes.values() if (blocked := lane.blocked)]
        return sorted(found, key=lambda each: each.since)

    @property
    def behind(self) -> Behind:
        """How much is left. Asks nobody: of what was not read yet it knows what the broker has said last."""
        unread = sum(max(0, self._end(place) - at) for place, at in self._unread_from.items())
        oldest = min((lane.waiting[0].received_ms for lane in self._lanes.values() if lane.waiting), default=None)
        return Behind(self.waiting + unread, oldest)

    def wake(self, topic: str, partition: int, offset: int) -> None:
        """Try again now, if that record is what blocks its key."""
        for (place, _), lane in self._lanes.items():
            if place == (topic, partition) and lane.waiting and lane.waiting[0].offset == offset:
                lane.wake()

    def stop(self) -> None:
        """Take no more; `run` returns when what is under way is done, or its time is over."""
        self._stopping.set()

    async def run(self) -> None:
        """Until it is stopped. Raises what the taker raises, and BrokerUnavailable."""
        loop = asyncio.get_running_loop()
        revoked = partial(self._on_revoked, loop)
        self._consumer.subscribe(self._topics, on_assign=self._on_assigned, on_revoke=revoked, on_lost=revoked)
        committing = asyncio.ensure_future(self._keep_committing())
        committing.add_done_callback(self._hear_end)
        try:
            while not self._stopping.is_set() and self._failed is None:
                for message in await self._beside(self._consumer.consume, _AT_ONCE, POLL_SECONDS):
                    self._take(message)
                self._press()
            await self._end_tasks(list(self._tasks), self._limits.leave)
        finally:
            await self._leave(committing)
        if self._failed is not None:
            raise self._failed

    async def _leave(self, committing: asyncio.Task[None]) -> None:
        async with self._one_commit:  # a commit that has begun is ended: after the last one it might go back
            committing.cancel()
        self._unread_from.clear()  # a consumer that is closed cannot be asked
        try:
            await self._commit()
        finally:
            await self._beside(self._consumer.close)
            self._threads.shutdown(wait=False)

    def _take(self, message: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
        if (error := message.error()) is not None:
            self._hear(error, message)
            return
        record = Record.of(message)
        place = record.topic, record.partition
        self._unread_from[place] = record.offset + 1
        self._prefixes.setdefault(place, Prefix()).begin(record.offset)
        if self._taker.wants(record):
            self._queue(place, record)
        else:
            self._prefixes[place].done(record.offset)

    def _hear(self, error: KafkaError, message: Any) -> None:  # noqa: ANN401 - likewise
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name in the driver
            self._unread_from.pop((message.topic(), message.partition()), None)
            return
        log.warning("consuming.trouble", why=error.str())
        if error.fatal():
            raise BrokerUnavailable(f"the broker ended the consumer: {error.str()}", do="galatea status")

    def _queue(self, place: Place, record: Record) -> None:
        key = place, record.key
        lane = self._lanes.get(key)
        if lane is None:
            lane = Lane(self._taker, self._limits.batch, self._limits.longest_wait)
            self._lanes[key] = lane
        lane.waiting.append(record)
        self.waiting += 1
        if key not in self._tasks or self._tasks[key].done():
            task = self._tasks[key] = asyncio.ensure_future(lane.work(self._places, self._done))
            task.add_done_callback(partial(self._ended, key))

    def _end(self, place: Place) -> int:
        """As the broker has said last."""
        _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
        return int(end)

    def _done(self, record: Record) -> None:
        self.waiting -= 1
        self._prefixes[record.topic, record.partition].done(record.offset)

    def _ended(self, key: tuple[Place, bytes], task: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
            lane = self._lanes.pop(key)
            self.waiting -= len(lane.waiting)
        self._hear_end(task)

    def _hear_end(self, task: asyncio.Task[None]) -> None:
        """What breaks a part ends the member."""
        if not task.cancelled() and task.exception() is not None:
            self._failed = self._failed or task.exception()

    def _press(self) -> None:
        """Pause where too many wait, and go on when half of them are done."""
        if not self.is_paused and self.waiting >= self._limits.waiting:
            self._consumer.pause(self._consumer.assignment())
            self.is_paused = True
        elif self.is_paused and self.waiting <= self._limits.waiting // 2:
            self._consumer.resume(self._consumer.assignment())
            self.is_paused = False

    async def _keep_committing(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            await self._commit()

    async def _beside(self, work: Callable[..., Any], *said: object) -> Any:  # noqa: ANN401 - whatever it gives back
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *said)

    async def _commit(self) -> None:
        """One after the other. The thread is handed offsets alone: what it read itself might change meanwhile."""
        async with self._one_commit:
            positions = {place: prefix.position for place, prefix in self._prefixes.items()}
            ahead = {
                place: position for place, position in positions.items()
                if position is not None and position != self._committed.get(place)
            }  # fmt: skip
            if ahead and await self._beside(self._is_committed, ahead):
                self._committed |= ahead

    def _is_committed(self, ahead: Mapping[Place, int]) -> bool:
        try:
            offsets = [TopicPartition(*place, position) for place, position in ahead.items()]
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:  # what is not committed comes again
            log.warning("consuming.not_committed", why=str(error))
            return False
        return True

    def _on_assigned(self, _: Any, parts: list[TopicPartition]) -> None:  # noqa: ANN401 - likewise
        """On the thread that polls. librdkafka keeps a pause over what is taken away and comes back."""
        self._consumer.resume(parts)

    def _on_revoked(self, loop: asyncio.AbstractEventLoop, _: Any, parts: list[TopicPartition]) -> None:  # noqa: ANN401
        """On the thread that polls: whoever has the partitions next begins where these calls have ended."""
        places = {(part.topic, part.partition) for part in parts}
        asyncio.run_coroutine_threadsafe(self._give_up(places), loop).result()

    async def _give_up(self, places: set[Place]) -> None:
        await self._end_tasks([key for key in self._tasks if key[0] in places], self._limits.leave)
        await self._commit()
        for place in places:
            self._prefixes.pop(place, None)
            self._committed.pop(place, None)
            self._unread_from.pop(place, None)
        self.is_paused = False

    async def _end_tasks(self, keys: list[tuple[Place, bytes]], seconds: float) -> None:
        """Let them end what is under way, and nothing more."""
        tasks = [self._tasks[key] for key in keys]
        for key in keys:
            lane = self._lanes[key]
            lane.end()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
