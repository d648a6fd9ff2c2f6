"""P20, a consumer that is slower than its topic needs back pressure, or its memory grows until it dies.

Ten records arrive for each one that is processed. An unbounded queue takes them all: its peak is the whole topic. With
a bound, the consumer pauses its partition when the queue is full, so that the client fetches no more, and resumes it
when there is room; records wait in the broker, which is made for that. (The client has a buffer of its own, 64 MB by
default, here 1 MB.) Nothing is lost either way, but only the bounded one can run for ever. Galatea's consumer
(`master_dataset.kafka.consumer`) takes up to 500 records per poll, so it may exceed its bound by that many.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from lab.guarantees.clients import LOOK_SECONDS, member, resumed, until
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import ZERO, Bound, Result, at_least, at_most, count_numbers
from master_dataset.kafka.consumer import ConsumerLimits, ConsumerRecord, Done, KeyedConsumer, Reject

TIMES_FASTER, RECORD_BYTES, LIMIT, ENOUGH, AT_A_LOOK = 10, 1024, 500, 250, 500
MEGABYTE = 1 << 20
SOON_SECONDS = 1.0
SMALL_BUFFER = {"queued.max.messages.kbytes": 1024}


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """The same topic, read three times."""
    sent = 5 * setup.size.records
    filling = ((b"one key", str(number).encode().ljust(RECORD_BYTES)) for number in range(sent))
    topic = setup.filled("p20", filling)
    bounded = {"peak records": at_most(LIMIT + TIMES_FASTER), "pauses": at_least(1), "resumes": at_least(1)}
    unbounded = {"peak records": at_least(sent // 2), "pauses": ZERO, "resumes": ZERO}
    return [
        _line(setup, topic, sent, None, unbounded),
        _line(setup, topic, sent, LIMIT, bounded),
        asyncio.run(_consumed(setup, topic, sent, bounded | {"peak records": at_most(LIMIT + AT_A_LOOK)})),
    ]


class Intake:
    """A queue before slow work. `limit`: records at which the partition is paused; None: never."""

    def __init__(self, reader: Consumer, topic: str, limit: int | None) -> None:
        """The reader is assigned already."""
        self._reader, self._place, self._limit = reader, [TopicPartition(topic, 0)], limit
        self.queue: deque[bytes] = deque()
        self.peak = self.peak_bytes = self.pauses = self.resumes = 0
        self.ended = False

    def take(self) -> None:
        """Take what arrives while one record is processed."""
        is_paused = self.pauses > self.resumes
        for message in self._reader.consume(TIMES_FASTER, 0 if is_paused or self.ended else SOON_SECONDS):
            error = message.error()
            if error is None:
                self.queue.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                self.ended = True
        self.peak = max(self.peak, len(self.queue))
        self.peak_bytes = max(self.peak_bytes, RECORD_BYTES * len(self.queue))
        if self._limit is None or self.ended:
            return
        if not is_paused and len(self.queue) >= self._limit:
            self._reader.pause(self._place)
            self.pauses += 1
        elif is_paused and len(self.queue) <= ENOUGH:
            self._reader.resume(self._place)
            self.resumes += 1


def _line(setup: ExperimentSetup, topic: str, sent: int, limit: int | None, expected: Mapping[str, Bound]) -> Result:
    reader = resumed(setup.kafka, setup.name(f"p20-{limit}"), topic, SMALL_BUFFER)
    intake, done = Intake(reader, topic, limit), []
    while not intake.ended or intake.queue:
        intake.take()
        if intake.queue:
            done.append(int(intake.queue.popleft()))
    reader.close()
    counted = {"peak records": intake.peak, "pauses": intake.pauses, "resumes": intake.resumes}
    return Result(
        "unbounded queue" if limit is None else f"bounded queue of {limit:,}",
        f"work {TIMES_FASTER} x slower",
        sent,
        count_numbers(sent, done),
        expected,
        counted,
        {"peak": f"{intake.peak_bytes / MEGABYTE:.1f} MB"},
    )


class Counted(Consumer):
    """What Galatea's own module reads with, and how often that was paused and resumed. `given`: records so far."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """As any consumer."""
        super().__init__(settings)
        self.given = self.pauses = self.resumes = 0

    def consume(self, *said: Any, **more: Any) -> list[Message]:  # noqa: ANN401 - as the driver has it
        """What there is."""
        found = super().consume(*said, **more)
        self.given += sum(message.error() is None for message in found)
        return found

    def pause(self, partitions: list[TopicPartition]) -> None:
        """No more of these."""
        super().pause(partitions)
        self.pauses += 1

    def resume(self, partitions: list[TopicPartition]) -> None:
        """More of these."""
        super().resume(partitions)
        self.resumes += 1


class Slow:
    """Works one record off for ten that come, and for each that waits while no more are let in."""

    def __init__(self, sent: int) -> None:
        """Nothing is read yet."""
        self._sent, self.done, self.peak = sent, list[int](), 0
        self.reader: Counted | None = None
        self.consuming: KeyedConsumer | None = None

    def connect(self, settings: dict[str, Any]) -> Counted:
        """What is read with."""
        self.reader = Counted(settings)
        return self.reader

    def accepts(self, _record: ConsumerRecord) -> bool:
        """Everything."""
        return True

    async def handle(self, records: Sequence[ConsumerRecord]) -> Done:
        """Work it off, in its time."""
        while not self._may_work():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(LOOK_SECONDS)
        self.peak = max(self.peak, self.consuming.waiting if self.consuming else 0)
        self.done += [int(record.value) for record in records]
        await asyncio.sleep(0)
        return Done()

    async def store_rejected(self, _record: ConsumerRecord, _refused: Reject) -> Done:
        """Nothing is refused here."""
        return Done()

    def _may_work(self) -> bool:
        given = self.reader.given if self.reader else 0
        is_paused = self.consuming is not None and self.consuming.is_paused
        return is_paused or given >= self._sent or len(self.done) * TIMES_FASTER < given


async def _consumed(setup: ExperimentSetup, topic: str, sent: int, expected: Mapping[str, Bound]) -> Result:
    settings = {**setup.kafka.client(), "group.id": setup.name("p20-own"), **SMALL_BUFFER}
    slow, limits = Slow(sent), ConsumerLimits(waiting=LIMIT, batch=1)
    async with member(settings, topic, slow, limits, slow.connect) as consuming:
        slow.consuming = consuming
        await until(lambda: len(slow.done) >= sent, lambda: len(slow.done))
    reader = slow.reader
    counted = {
        "peak records": slow.peak,
        "pauses": reader.pauses if reader else 0,
        "resumes": reader.resumes if reader else 0,
    }
    return Result(
        f"`master_dataset.kafka.consumer`, bound {LIMIT:,}",
        f"work {TIMES_FASTER} x slower",
        sent,
        count_numbers(sent, slow.done),
        expected,
        counted,
        {"peak": f"{RECORD_BYTES * slow.peak / MEGABYTE:.1f} MB"},
    )


EXPERIMENT = Experiment("P20", "unbounded against bounded memory", run)
