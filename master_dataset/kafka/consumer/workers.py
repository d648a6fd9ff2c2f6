"""The lanes at work: a task for each as long as it has records, so many calls at once, and how many records wait."""

import asyncio
from collections.abc import Callable, Collection
from functools import partial

from master_dataset.kafka.consumer import buffer as room
from master_dataset.kafka.consumer.handler import Taker
from master_dataset.kafka.consumer.key_queue import Lane
from master_dataset.kafka.consumer.limits import Limits
from master_dataset.kafka.consumer.partition import Partition
from master_dataset.kafka.consumer.record import Record

Place = tuple[str, int]
Task = asyncio.Task[None]


class Working:
    """Belongs to one event loop."""

    def __init__(self, taker: Taker, limits: Limits, hear_end: Callable[[Task], None]) -> None:
        """`hear_end` is told of each task that has ended."""
        self._taker, self._limits, self._hear_end = taker, limits, hear_end
        self._calls = asyncio.Semaphore(limits.under_way)
        self._tasks: dict[tuple[Place, bytes], tuple[Task, Lane]] = {}
        self._failing: dict[tuple[Place, bytes], float] = {}
        self.waiting = 0

    def add(self, place: Place, partition: Partition, record: Record) -> None:
        """Hand it over after those of its key that came before it."""
        key = place, record.key
        lane = partition.lanes.get(record.key)
        if lane is None:
            since = self._failing.pop(key, None)
            lane = Lane(self._taker, self._limits.batch, self._limits.longest_wait, since)
            partition.lanes[record.key] = lane
        lane.waiting.append(record)
        self.waiting += 1
        if key not in self._tasks or self._tasks[key][0].done():
            task = asyncio.ensure_future(lane.work(self._calls, self._done))
            self._tasks[key] = task, lane
            task.add_done_callback(partial(self._ended, key, partition))

    def make_room(self, partitions: Collection[Partition]) -> int:
        """Let go what waits of keys that do not get on. How many records of theirs wait still."""
        gone, held = room.made(partitions, self._limits.waiting)
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

    def _done(self, _: Record) -> None:
        self.waiting -= 1

    def _ended(self, key: tuple[Place, bytes], partition: Partition, task: Task) -> None:
        if key in self._tasks and self._tasks[key][0] is task:
            del self._tasks[key]
            self.waiting -= partition.end(key[1])
        self._hear_end(task)
