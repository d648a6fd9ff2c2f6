"""P21, a bad record and an unavailable sink need different handling.

A bad record fails every time: the sink rejects every hundredth record (422), today and tomorrow. An outage passes: in
the middle, the sink is down for a while (503) and then takes the same record. A consumer that distinguishes them stores
the bad record as a dead letter with its reason and continues, and retries the other in order until it is accepted:
nothing is lost. A consumer that skips on any exception silently loses every record that arrives during the outage.
Galatea's consumer (`master_dataset.kafka.consumer`) hands over batches: if one is rejected, it tries each record alone.
"""

import asyncio
from collections.abc import Sequence

from confluent_kafka import Message

from lab.guarantees.clients import commit, flush, member, numbers, producer, resumed, until, until_end
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Bound, Counts, Result, count_numbers, exactly, inversions
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.consumer import ConsumerLimits, ConsumerRecord, Done, HandlerResult, Reject, Retry

EVERY, OUTAGE_TRIES = 100, 20
REASON = "rejected"


class RejectedError(Exception):
    """422: this record is wrong, and will be."""


class DownError(Exception):
    """503: whatever the record, come again."""


class Sink:
    """Refuses every hundredth record; after half of them it is down for so many tries."""

    def __init__(self, half: int) -> None:
        """Takes `half` records before it goes down."""
        self.taken: list[int] = []
        self._half, self._tries_down = half, OUTAGE_TRIES

    def take(self, *numbers: int) -> None:
        """Take them all, or say why none."""
        if len(self.taken) >= self._half and self._tries_down:
            self._tries_down -= 1
            raise DownError
        if any(number % EVERY == EVERY - 1 for number in numbers):
            raise RejectedError
        self.taken += numbers


class Skipping:
    """Goes on whatever happens. Do not do this."""

    def __init__(self, sink: Sink) -> None:
        """Gives everything to the sink, once."""
        self._sink = sink

    def work(self, message: Message) -> None:
        """One try."""
        try:
            self._sink.take(int(message.value() or b""))
        except (RejectedError, DownError):
            return


class Rejecting:
    """Distinguishes an error from a failure."""

    def __init__(self, sink: Sink, kafka: KafkaConnection, dead_letters: str) -> None:
        """Sends what the sink rejects to the topic of dead letters."""
        self._sink, self._dead_letters = sink, dead_letters
        self._producer = producer(kafka, acks="all", enable_idempotence=True)

    def work(self, message: Message) -> None:
        """Until the record is taken or put aside."""
        while True:
            try:
                self._sink.take(int(message.value() or b""))
            except DownError:
                continue  # sends the same record again before any other, so the order is kept
            except RejectedError:
                self.put(message.value() or b"")
            return

    def put(self, value: bytes) -> None:
        """Aside; the topic of dead letters has it."""
        self._producer.produce(self._dead_letters, value, headers={"reason": REASON})
        flush(self._producer)


class Taking:
    """What Galatea's own module hands records to: it only says which is which."""

    def __init__(self, sink: Sink, rejecting: Rejecting) -> None:
        """Sends rejected records to the topic of dead letters."""
        self._sink, self._rejecting = sink, rejecting
        self.put_aside_so_far = 0

    def accepts(self, _record: ConsumerRecord) -> bool:
        """Everything."""
        return True

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        """One call of the sink."""
        try:
            self._sink.take(*(int(record.value) for record in records))
        except DownError:
            return Retry("503: come again")
        except RejectedError:
            return Reject("422: this record is wrong")
        return Done()

    async def store_rejected(self, record: ConsumerRecord, _refused: Reject) -> Done:
        """A dead letter."""
        self._rejecting.put(record.value)
        self.put_aside_so_far += 1
        return Done()


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """The same sink, met in three ways."""
    sent = setup.size.records
    bad = sent // EVERY
    topic = setup.filled("p21", ((b"one key", str(number).encode()) for number in range(sent)))
    skipped, sink_rejected, own = Sink(sent // 2), Sink(sent // 2), Sink(sent // 2)
    topic_of_rejected, own_dead_letters = setup.topic("p21-dead-letters"), setup.topic("p21-own-dead-letters")
    _read(setup, topic, "skipping", Skipping(skipped))
    _read(setup, topic, "telling", Rejecting(sink_rejected, setup.kafka, topic_of_rejected))
    asyncio.run(_consume(setup, topic, own, Rejecting(own, setup.kafka, own_dead_letters)))
    fault = f"{bad} records bad, the sink down for {OUTAGE_TRIES} tries"
    return [
        Result(
            "skip on any exception",
            fault,
            sent,
            Counts(sent - len(skipped.taken), 0, inversions(skipped.taken)),
            {"lost": exactly(bad + OUTAGE_TRIES)},
        ),
        _result(setup, "dead letter, or retry in order", fault, sink_rejected, topic_of_rejected),
        _result(setup, "the same, `master_dataset.kafka.consumer`", fault, own, own_dead_letters),
    ]


def _result(setup: ExperimentSetup, mode: str, fault: str, sink: Sink, topic_of_rejected: str) -> Result:
    sent, bad, [store_rejected] = (
        setup.size.records,
        setup.size.records // EVERY,
        numbers(setup.kafka, topic_of_rejected),
    )
    expected: dict[str, Bound] = {"delivered": exactly(sent - bad), "dead letters": exactly(bad)}
    counted = {"delivered": len(sink.taken), "dead letters": len(store_rejected)}
    return Result(mode, fault, sent, count_numbers(sent, sink.taken, store_rejected), expected, counted)


def _read(setup: ExperimentSetup, topic: str, name: str, reading: Skipping | Rejecting) -> None:
    """Work off, then commit: P02."""
    reader = resumed(setup.kafka, setup.name(f"p21-{name}"), topic)
    for message in until_end(reader):
        reading.work(message)
        commit(reader, message)
    reader.close()


async def _consume(setup: ExperimentSetup, topic: str, sink: Sink, rejecting: Rejecting) -> None:
    settings = {**setup.kafka.client(), "group.id": setup.name("p21-own")}
    taking = Taking(sink, rejecting)
    async with member(settings, topic, taking, ConsumerLimits(longest_wait=0.01)):
        await until(lambda: _done(sink, taking) >= setup.size.records, lambda: _done(sink, taking))


def _done(sink: Sink, taking: Taking) -> int:
    return len(sink.taken) + taking.put_aside_so_far


EXPERIMENT = Experiment("P21", "an error is put aside, a failure is repeated", run)
