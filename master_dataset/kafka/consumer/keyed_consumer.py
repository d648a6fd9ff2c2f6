"""Who may wait in memory: keys that do not get on leave the room to those that do.

The lanes at work: a task for each as long as it has records, so many calls at once, and how many records wait.

One member of a consumer group that hands records over: in order for each key, several keys at once, bounded.

It commits only what is done without a gap, so a record may come twice and is never left out. When too many wait it
lets those go that wait behind what does not get on, and reads them again later; when too many wait still it pauses
its partitions, and goes on polling, so that the group does not take it for dead.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.consumer.handler import DEFAULT_LIMITS, Backlog, BlockedKey, ConsumerLimits, Handler
from master_dataset.kafka.consumer.key_queue import KeyQueue
from master_dataset.kafka.consumer.partition import Partition
from master_dataset.kafka.record import ConsumerRecord

_SHARE = 4
"""A quarter of the room is theirs together, beside what was handed over for them."""


class Room(NamedTuple):
    """`gone`: records that were let go. `held`: those that wait still, of keys that do not get on."""

    gone: int
    held: int


def made(partitions: Collection[Partition], most: int) -> Room:
    """Let go what waits of keys that do not get on. `most`: records that may wait in all."""
    stuck = [(each, key, lane) for each in partitions for key, lane in each.lanes.items() if lane.is_stuck]
    gone = sum(each.let_go(key, most // (_SHARE * len(stuck))) for each, key, _ in stuck)
    return Room(gone, sum(len(lane.waiting) for _, _, lane in stuck))


Place = tuple[str, int]
Task = asyncio.Task[None]


class Working:
    """Belongs to one event loop."""

    def __init__(self, taker: Handler, limits: ConsumerLimits, hear_end: Callable[[Task], None]) -> None:
        """`hear_end` is told of each task that has ended."""
        self._taker, self._limits, self._hear_end = taker, limits, hear_end
        self._calls = asyncio.Semaphore(limits.under_way)
        self._tasks: dict[tuple[Place, bytes], tuple[Task, KeyQueue]] = {}
        self._failing: dict[tuple[Place, bytes], float] = {}
        self.waiting = 0

    def add(self, place: Place, partition: Partition, record: ConsumerRecord) -> None:
        """Hand it over after those of its key that came before it."""
        key = place, record.key
        lane = partition.lanes.get(record.key)
        if lane is None:
            since = self._failing.pop(key, None)
            lane = KeyQueue(self._taker, self._limits.batch, self._limits.longest_wait, since)
            partition.lanes[record.key] = lane
        lane.waiting.append(record)
        self.waiting += 1
        if key not in self._tasks or self._tasks[key][0].done():
            task = asyncio.ensure_future(lane.work(self._calls, self._done))
            self._tasks[key] = task, lane
            task.add_done_callback(partial(self._ended, key, partition))

    def make_room(self, partitions: Collection[Partition]) -> int:
        """Let go what waits of keys that do not get on. How many records of theirs wait still."""
        gone, held = made(partitions, self._limits.waiting)
        self.waiting -= gone
        return held

    async def end(self, places: Collection[Place]) -> None:
        """Let them end what is under way, and nothing more. Since when a key fails is known when it comes again."""
        own = {key: each for key, each in self._tasks.items() if key[0] in places}
        self._failing |= {key: lane.failing_since for key, (_, lane) in own.items() if lane.failing_since}
        ending = own.values()
        for _, lane in ending:
            lane.end()
        if tasks := [task for task, _ in ending]:
            _, late = await asyncio.wait(tasks, timeout=self._limits.leave)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, _: ConsumerRecord) -> None:
        self.waiting -= 1

    def _ended(self, key: tuple[Place, bytes], partition: Partition, task: Task) -> None:
        if key in self._tasks and self._tasks[key][0] is task:
            del self._tasks[key]
            self.waiting -= partition.end(key[1])
        self._hear_end(task)


log = structlog.get_logger()
POLL_SECONDS, COMMIT_SECONDS = 0.1, 1.0
_AT_ONCE = 500
_THREADS = 2
"""Of each member its own: one polls, one commits. Others that are stuck take none of them."""


class KeyedConsumer:
    """Belongs to one event loop, and runs once."""

    def __init__(
        self,
        settings: dict[str, Any],
        topics: Iterable[str],
        taker: Handler,
        limits: ConsumerLimits = DEFAULT_LIMITS,
        connect: Callable[[dict[str, Any]], Any] = Consumer,
    ) -> None:
        """`settings`: of librdkafka: servers and group, and what is particular."""
        own = {
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
        self._consumer = connect({**settings, **own})
        self._threads = ThreadPoolExecutor(_THREADS, "consuming")
        self._topics, self._taker, self._limits = list(topics), taker, limits
        self._working = Working(taker, limits, self._hear_end)
        self._partitions: dict[Place, Partition] = {}
        self._committed: dict[Place, int] = {}
        self._stopping, self._one_commit = asyncio.Event(), asyncio.Lock()
        self._failed: BaseException | None = None
        self.is_paused = False

    @property
    def waiting(self) -> int:
        """Records that were taken from the broker and wait in memory."""
        return self._working.waiting

    @property
    def failing_since(self) -> float | None:
        """Since when, in seconds since 1970, a key is tried again and again; None if none is."""
        return min((lane.failing_since for lane in self._lanes() if lane.failing_since), default=None)

    @property
    def blocked(self) -> list[BlockedKey]:
        """The keys that are tried again and again, the longest first."""
        found = [blocked for lane in self._lanes() if (blocked := lane.blocked)]
        return sorted(found, key=lambda each: each.since)

    @property
    def behind(self) -> Backlog:
        """How much is left. Asks nobody: of what was not read yet it knows what the broker has said last."""
        left = sum(each.left + self._unread(place, each) for place, each in self._partitions.items())
        oldest = min((lane.waiting[0].received_ms for lane in self._lanes() if lane.waiting), default=None)
        return Backlog(self.waiting + left, oldest)

    def _lanes(self) -> Iterator[KeyQueue]:
        return chain.from_iterable(partition.lanes.values() for partition in self._partitions.values())

    def wake(self, topic: str, partition: int, offset: int) -> None:
        """Try again now, if that record is what blocks its key."""
        for lane in self._lanes():
            if lane.waiting and lane.waiting[0][:3] == (topic, partition, offset):
                lane.wake()

    def stop(self) -> None:
        """Take no more; `run` returns when what is under way is done, or its time is over."""
        self._stopping.set()

    async def run(self) -> None:
        """Until it is stopped. Raises what the taker raises, and BrokerUnavailableError."""
        loop = asyncio.get_running_loop()
        assigned, revoked = partial(self._on_assigned, loop), partial(self._on_revoked, loop)
        self._consumer.subscribe(self._topics, on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        committing = asyncio.ensure_future(self._keep_committing())
        committing.add_done_callback(self._hear_end)
        try:
            while not self._stopping.is_set() and self._failed is None:
                for message in await self._beside(self._consumer.consume, _AT_ONCE, POLL_SECONDS):
                    await self._take(message)
                self._press()
                await self._go_back()
            await self._working.end(self._partitions)
        finally:
            await self._leave(committing)
        if self._failed is not None:
            raise self._failed

    async def _leave(self, committing: asyncio.Task[None]) -> None:
        async with self._one_commit:  # a commit that has begun is ended: after the last one it might go back
            committing.cancel()
        for partition in self._partitions.values():
            partition.unread_from = None  # a consumer that is closed cannot be asked
        try:
            await self._commit()
        finally:
            await self._beside(self._consumer.close)
            self._threads.shutdown(wait=False)

    async def _take(self, message: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
        if (error := message.error()) is not None:
            self._hear(error, message)
            return
        record = ConsumerRecord.of(message)
        place = record.topic, record.partition
        if place not in self._partitions:  # it was taken away since it was read
            return
        if self._partitions[place].has_passed(record.offset):
            log.warning("consuming.went_back", topic=record.topic, partition=record.partition, offset=record.offset)
            await self._drop({place})  # its offsets mean something else now
            self._own({place})
        partition = self._partitions[place]
        if partition.takes(record, self._taker.wants):
            self._working.add(place, partition, record)

    def _hear(self, error: KafkaError, message: Any) -> None:  # noqa: ANN401 - likewise
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name in the driver
            if (partition := self._partitions.get((message.topic(), message.partition()))) is not None:
                partition.unread_from = None
            return
        log.warning("consuming.trouble", why=error.str())
        if error.fatal():
            raise BrokerUnavailableError(f"the broker ended the consumer: {error.str()}", do="galatea status")

    def _unread(self, place: Place, partition: Partition) -> int:
        """As the broker has said last."""
        if partition.unread_from is None:
            return 0
        _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
        return max(0, int(end) - partition.unread_from)

    def _hear_end(self, task: asyncio.Task[None]) -> None:
        """What breaks a part ends the member."""
        if not task.cancelled() and task.exception() is not None:
            self._failed = self._failed or task.exception()

    def _press(self) -> None:
        """Pause where too many wait, and go on when half of what does get on is done."""
        most = self._limits.waiting
        if not self.is_paused and self.waiting < most:
            return
        held = self._working.make_room(self._partitions.values())
        if not self.is_paused and self.waiting >= most:
            self._consumer.pause(self._consumer.assignment())
            self.is_paused = True
        elif self.is_paused and held < most and self.waiting - held <= (most - held) // 2:
            self._consumer.resume(self._consumer.assignment())
            self.is_paused = False

    async def _go_back(self) -> None:
        """Read again what was let go of keys that have got on."""
        for place, partition in () if self.is_paused else list(self._partitions.items()):
            if (offset := partition.go_back()) is not None:
                try:
                    await self._beside(self._consumer.seek, TopicPartition(*place, offset))
                except KafkaException as error:
                    raise BrokerUnavailableError(
                        f"the broker cannot be read again: {error}", do="galatea status"
                    ) from error

    async def _keep_committing(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            await self._commit()

    async def _beside(self, work: Callable[..., Any], *said: object) -> Any:  # noqa: ANN401 - whatever it gives back
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *said)

    async def _commit(self) -> None:
        """One after the other. The thread is handed offsets alone: what it read itself might change meanwhile."""
        async with self._one_commit:
            positions = {place: partition.position for place, partition in self._partitions.items()}
            ahead = {
                place: position
                for place, position in positions.items()
                if position is not None and position != self._committed.get(place)
            }
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

    def _on_assigned(self, loop: asyncio.AbstractEventLoop, _: Any, parts: list[TopicPartition]) -> None:  # noqa: ANN401
        """On the thread that polls. librdkafka keeps a pause over what is taken away and comes back."""
        self._consumer.resume(parts)
        loop.call_soon_threadsafe(self._own, {(part.topic, part.partition) for part in parts})

    def _own(self, places: set[Place]) -> None:
        self._partitions |= {place: Partition() for place in places}

    def _on_revoked(self, loop: asyncio.AbstractEventLoop, _: Any, parts: list[TopicPartition]) -> None:  # noqa: ANN401
        """On the thread that polls: whoever has the partitions next begins where these calls have ended."""
        places = {(part.topic, part.partition) for part in parts}
        asyncio.run_coroutine_threadsafe(self._give_up(places), loop).result()

    async def _give_up(self, places: set[Place]) -> None:
        await self._working.end(places)
        await self._commit()
        await self._drop(places)
        self.is_paused = False

    async def _drop(self, places: set[Place]) -> None:
        await self._working.end(places)
        for place in places:
            self._partitions.pop(place, None)
            self._committed.pop(place, None)
