"""One member of a consumer group that passes records to a handler: in order per key, several keys in parallel.

Only offsets before which everything is done are committed, so a record may be passed twice but is never lost.
Memory is bounded: when too many records wait, those behind a stalled key are dropped and read again later; when too
many still wait, the partitions are paused, and polling continues, so that the member stays in its group.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.consumer.handler import DEFAULT_LIMITS, Backlog, BlockedKey, ConsumerLimits, Handler
from master_dataset.kafka.consumer.key_queue import KeyQueue
from master_dataset.kafka.consumer.partition import Partition
from master_dataset.kafka.record import ConsumerRecord, PartitionId

log = structlog.get_logger()
POLL_SECONDS, COMMIT_SECONDS = 0.1, 1.0
_RECORDS_PER_POLL = 500
_THREADS = 2
"""Threads of each member: one polls, one commits. A hanging member does not block others."""
_STALLED_SHARE = 4
"""All stalled keys together keep a quarter of the memory, in addition to what is in flight."""


class KeyedConsumer:
    """Belongs to one event loop, and runs once."""

    def __init__(
        self,
        settings: dict[str, Any],
        topics: Iterable[str],
        handler: Handler,
        limits: ConsumerLimits = DEFAULT_LIMITS,
        connect: Callable[[dict[str, Any]], Any] = Consumer,
    ) -> None:
        """Create a member; it joins its group in `run`.

        Args:
            settings: Settings of librdkafka: at least servers and group. Commits, isolation and offset reset are set
                here.
            topics: Topics to subscribe to.
            handler: Handles the records.
            limits: Bounds of memory and parallel calls.
            connect: Creates the driver's consumer from the settings.
        """
        own = {
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
        self._consumer = connect({**settings, **own})
        self._threads = ThreadPoolExecutor(_THREADS, "keyed_consumer")
        self._topics, self._handler, self._limits = list(topics), handler, limits
        self._partitions: dict[PartitionId, Partition] = {}
        self._workers = _Workers(handler, limits, self._on_task_end)
        self._committed: dict[PartitionId, int] = {}
        self._stopping, self._commit_lock = asyncio.Event(), asyncio.Lock()
        self._failure: BaseException | None = None
        self.is_paused = False

    async def run(self) -> None:
        """Consume until `stop`.

        Raises:
            BrokerUnavailableError: The broker ended the consumer, or cannot be read again.
            BaseException: Whatever the handler raised.
        """
        loop = asyncio.get_running_loop()
        assigned, revoked = partial(self._on_assigned, loop), partial(self._on_revoked, loop)
        self._consumer.subscribe(self._topics, on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        committing = asyncio.ensure_future(self._commit_periodically())
        committing.add_done_callback(self._on_task_end)
        try:
            while not self._stopping.is_set() and self._failure is None:
                for message in await self._in_thread(self._consumer.consume, _RECORDS_PER_POLL, POLL_SECONDS):
                    await self._receive(message)
                self._limit_memory()
                await self._reread_dropped()
        finally:
            await self._close(committing)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Accept no more records; `run` returns when the running calls have ended or timed out."""
        self._stopping.set()

    def wake(self, topic: str, partition: int, offset: int) -> None:
        """Retry now, if that record is the one that blocks its key."""
        for queue in self._queues():
            if queue.waiting and queue.waiting[0][:3] == (topic, partition, offset):
                queue.wake()

    @property
    def waiting(self) -> int:
        """Records in memory that are not done."""
        return self._workers.waiting

    @property
    def failing_since(self) -> float | None:
        """Since when some key is retried, in seconds since 1970; None if none is."""
        return min((queue.failing_since for queue in self._queues() if queue.failing_since), default=None)

    @property
    def blocked(self) -> list[BlockedKey]:
        """The keys that are retried, the longest first."""
        found = [blocked for queue in self._queues() if (blocked := queue.blocked)]
        return sorted(found, key=lambda each: each.since)

    @property
    def backlog(self) -> Backlog:
        """The backlog, by the broker's last response; makes no request."""
        left = sum(each.dropped_records + self._unread(id_, each) for id_, each in self._partitions.items())
        oldest = min((queue.waiting[0].received_ms for queue in self._queues() if queue.waiting), default=None)
        return Backlog(self.waiting + left, oldest)

    def _unread(self, id_: PartitionId, partition: Partition) -> int:
        if partition.unread_from is None:
            return 0
        _, end = self._consumer.get_watermark_offsets(TopicPartition(*id_), cached=True)
        return max(0, int(end) - partition.unread_from)

    def _queues(self) -> Iterator[KeyQueue]:
        return chain.from_iterable(partition.queues.values() for partition in self._partitions.values())

    # Reading

    async def _receive(self, message: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
        if (error := message.error()) is not None:
            self._receive_error(error, message)
            return
        record = ConsumerRecord.of(message)
        id_ = record.topic, record.partition
        if id_ not in self._partitions:  # revoked since it was read
            return
        if self._partitions[id_].went_back(record.offset):
            log.warning(
                "consumer.offset_went_back", topic=record.topic, partition=record.partition, offset=record.offset
            )
            await self._forget({id_})  # its offsets now belong to different records
            self._assign({id_})
        partition = self._partitions[id_]
        if partition.admit(record, self._handler.accepts):
            self._workers.add(id_, partition, record)

    def _receive_error(self, error: KafkaError, message: Any) -> None:  # noqa: ANN401 - likewise
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name in the driver
            if (partition := self._partitions.get((message.topic(), message.partition()))) is not None:
                partition.reach_end(message.offset())
            return
        log.warning("consumer.broker_error", error=error.str())
        if error.fatal():
            raise BrokerUnavailableError(f"the broker ended the consumer: {error.str()}", do="galatea status")

    def _limit_memory(self) -> None:
        """Pause when too many records wait; resume when half of those that make progress are done."""
        most = self._limits.waiting
        if not self.is_paused and self.waiting < most:
            return
        stalled = self._workers.drop_stalled(self._partitions.values())
        if not self.is_paused and self.waiting >= most:
            self._consumer.pause(self._consumer.assignment())
            self.is_paused = True
        elif self.is_paused and stalled < most and self.waiting - stalled <= (most - stalled) // 2:
            self._consumer.resume(self._consumer.assignment())
            self.is_paused = False

    async def _reread_dropped(self) -> None:
        """Seek back to the dropped records of keys that make progress again."""
        for id_, partition in () if self.is_paused else list(self._partitions.items()):
            if (offset := partition.seek_offset()) is not None:
                try:
                    await self._in_thread(self._consumer.seek, TopicPartition(*id_, offset))
                except KafkaException as error:
                    message = f"the broker cannot be read again: {error}"
                    raise BrokerUnavailableError(message, do="galatea status") from error

    # Committing

    async def _commit_periodically(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            await self._commit()

    async def _commit(self) -> None:
        """Commit the positions that have moved, one commit at a time.

        Positions are read on the event loop: on the thread they might change while they are read.
        """
        async with self._commit_lock:
            positions = {id_: partition.position for id_, partition in self._partitions.items()}
            moved = {
                id_: position
                for id_, position in positions.items()
                if position is not None and position != self._committed.get(id_)
            }
            if moved and await self._in_thread(self._commit_offsets, moved):
                self._committed |= moved

    def _commit_offsets(self, positions: Mapping[PartitionId, int]) -> bool:
        try:
            offsets = [TopicPartition(*id_, position) for id_, position in positions.items()]
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:  # uncommitted records are passed again
            log.warning("consumer.commit_failed", error=str(error))
            return False
        return True

    # Assignment and shutdown

    def _on_assigned(self, loop: asyncio.AbstractEventLoop, _: Any, parts: list[TopicPartition]) -> None:  # noqa: ANN401
        """On the polling thread. librdkafka keeps a partition paused that is revoked and assigned again."""
        self._consumer.resume(parts)
        loop.call_soon_threadsafe(self._assign, {(part.topic, part.partition) for part in parts})

    def _assign(self, ids: set[PartitionId]) -> None:
        self._partitions |= {id_: Partition() for id_ in ids}

    def _on_revoked(self, loop: asyncio.AbstractEventLoop, _: Any, parts: list[TopicPartition]) -> None:  # noqa: ANN401
        """On the polling thread, which blocks the rebalance: the next owner starts where the running calls ended."""
        ids = {(part.topic, part.partition) for part in parts}
        asyncio.run_coroutine_threadsafe(self._revoke(ids), loop).result()

    async def _revoke(self, ids: set[PartitionId]) -> None:
        await self._workers.stop(ids)
        await self._commit()
        await self._forget(ids)
        self.is_paused = False

    async def _forget(self, ids: set[PartitionId]) -> None:
        await self._workers.stop(ids)
        for id_ in ids:
            self._partitions.pop(id_, None)
            self._committed.pop(id_, None)

    async def _close(self, committing: asyncio.Task[None]) -> None:
        await self._workers.stop(self._partitions)  # after an error, too: a successor reads the same records again
        async with self._commit_lock:  # a commit that has begun must end before the last one, or it would go back
            committing.cancel()
        for partition in self._partitions.values():
            partition.unread_from = None  # a closed consumer cannot look up the end
        try:
            await self._commit()
        finally:
            await self._in_thread(self._consumer.close)
            self._threads.shutdown(wait=False)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        """A task that raised ends the whole member."""
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    async def _in_thread(self, call: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401 - what the call returns
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)


class _Workers:
    """Runs a task for each key queue that has records, and counts the records in memory."""

    def __init__(
        self, handler: Handler, limits: ConsumerLimits, on_task_end: Callable[[asyncio.Task[None]], None]
    ) -> None:
        self._handler, self._limits, self._on_task_end = handler, limits, on_task_end
        self._calls = asyncio.Semaphore(limits.under_way)
        self._running: dict[tuple[PartitionId, bytes], tuple[asyncio.Task[None], KeyQueue]] = {}
        self._failing: dict[tuple[PartitionId, bytes], float] = {}  # of stopped queues, since when they fail
        self.waiting = 0

    def add(self, id_: PartitionId, partition: Partition, record: ConsumerRecord) -> None:
        """Append the record to the queue of its key, and start the queue if necessary."""
        key = id_, record.key
        queue = partition.queues.get(record.key)
        if queue is None:
            since = self._failing.pop(key, None)
            queue = KeyQueue(self._handler, self._limits.batch, self._limits.longest_wait, since)
            partition.queues[record.key] = queue
        queue.waiting.append(record)
        self.waiting += 1
        if key not in self._running or self._running[key][0].done():
            task = asyncio.ensure_future(queue.run(self._calls, self._on_done))
            self._running[key] = task, queue
            task.add_done_callback(partial(self._on_queue_end, key, partition))

    def drop_stalled(self, partitions: Collection[Partition]) -> int:
        """Drop records waiting behind stalled keys. Returns how many of their records still wait."""
        stalled = [(part, key, queue) for part in partitions for key, queue in part.queues.items() if queue.is_stalled]
        for part, key, _ in stalled:
            self.waiting -= part.drop_tail(key, self._limits.waiting // (_STALLED_SHARE * len(stalled)))
        return sum(len(queue.waiting) for _, _, queue in stalled)

    async def stop(self, ids: Collection[PartitionId]) -> None:
        """Let running calls of these partitions end, and cancel those that take longer than the limit."""
        stopping = {key: each for key, each in self._running.items() if key[0] in ids}
        for _, queue in stopping.values():
            queue.stop()
        if tasks := [task for task, _ in stopping.values()]:
            _, late = await asyncio.wait(tasks, timeout=self._limits.leave)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # Now, not before: a running call may have got through, and its key fails no more.
        self._failing |= {key: queue.failing_since for key, (_, queue) in stopping.items() if queue.failing_since}

    def _on_done(self, _: ConsumerRecord) -> None:
        self.waiting -= 1

    def _on_queue_end(self, key: tuple[PartitionId, bytes], partition: Partition, task: asyncio.Task[None]) -> None:
        if key in self._running and self._running[key][0] is task:
            del self._running[key]
            self.waiting -= partition.end_queue(key[1])
        self._on_task_end(task)
