"""P23, micro-batches that take what is there: no timer and no fixed size.

A batch costs 20 ms plus 0.05 ms per record. A consumer that waits for one record and then takes everything that has
arrived has batches of one under low load and of more than a hundred under high load: the load itself makes them larger.
With a fixed batch of a hundred, the first record waits for ninety-nine others. The speed layer takes what is there, up
to a limit. Only counts decide the verdict; delays are printed.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from confluent_kafka import Consumer, Message

from lab.guarantees.clients import PATIENCE_SECONDS, flush, producer, resumed
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Bound, Result, at_least, at_most, count_numbers, exactly

BATCH_SECONDS, RECORD_SECONDS = 0.02, 0.00005
FIXED, MOST = 100, 500
SLOW, FAST = (100, 20), (10_000, 5000)
"""Records, and records a second."""
Take = Callable[[Consumer], list[Message]]


class Worker:
    """Works batches off, and keeps how large they were and how old their records were when they were done."""

    def __init__(self, setup: ExperimentSetup, topic: str, take: Take) -> None:
        """A group of its own."""
        self._reader = resumed(setup.kafka, setup.name(f"p23-{id(self)}"), topic, {"enable.partition.eof": False})
        self._take = take
        self.sizes: list[int] = []
        self.numbers: list[int] = []
        self.delays_ms: list[float] = []

    def run(self, records: int) -> None:
        """Until it has so many. TimeoutError if they do not come."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.numbers) < records:
            batch = [message for message in self._take(self._reader) if message.error() is None]
            if time.monotonic() > deadline:
                raise TimeoutError("records did not come")
            if not batch:
                continue
            time.sleep(BATCH_SECONDS + RECORD_SECONDS * len(batch))
            now_ms = time.time() * 1000
            self.sizes.append(len(batch))
            self.numbers += [int(message.value() or b"") for message in batch]
            self.delays_ms += [now_ms - message.timestamp()[1] for message in batch]
        self._reader.close()


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Little load on both kinds, much load on the adaptive one."""
    few, many = {"mean batch": at_most(2)}, {"mean batch": at_least(FIXED)}
    [slow, fixed] = _loaded(setup, "slow", SLOW, [what_is_there, partial(a_fixed_batch, FIXED)])
    [fast] = _loaded(setup, "fast", FAST, [what_is_there])
    return [
        _line("take what is there", SLOW, slow, few),
        _line("take what is there", FAST, fast, many),
        _line(f"wait for {FIXED}", SLOW, fixed, {"mean batch": exactly(FIXED)}),
    ]


def what_is_there(reader: Consumer) -> list[Message]:
    """Wait for one; take what came with it."""
    first = reader.poll(1)
    return [] if first is None else [first, *reader.consume(MOST - 1, 0)]


def a_fixed_batch(size: int, reader: Consumer) -> list[Message]:
    """Wait for so many."""
    return list(reader.consume(size, PATIENCE_SECONDS))


def _loaded(setup: ExperimentSetup, name: str, load: tuple[int, int], takes: Sequence[Take]) -> list[Worker]:
    topic = setup.topic(f"p23-{name}")
    workers = [Worker(setup, topic, take) for take in takes]
    with ThreadPoolExecutor(len(workers)) as pool:
        working = [pool.submit(worker.run, load[0]) for worker in workers]
        _send(setup, topic, *load)
        for each in working:
            each.result()
    return workers


def _send(setup: ExperimentSetup, topic: str, records: int, per_second: int) -> None:
    """So many a second on the whole: what a slow machine could not send in time is sent as soon as it can."""
    sender = producer(setup.kafka, acks="all", enable_idempotence=True, batch_num_messages=1000)
    began, sent = time.monotonic(), 0
    while sent < records:
        due = min(int((time.monotonic() - began) * per_second) + 1, records)
        for number in range(sent, due):
            sender.produce(topic, str(number).encode())
        sent = due
        sender.poll(0)
        time.sleep(0.002)
    flush(sender)


def _line(mode: str, load: tuple[int, int], worker: Worker, expected: Mapping[str, Bound]) -> Result:
    records, per_second = load
    delays = sorted(worker.delays_ms)
    return Result(
        mode,
        f"{per_second:,} records/s",
        records,
        count_numbers(records, worker.numbers),
        expected,
        {"mean batch": round(records / len(worker.sizes))},
        {"delay p95": f"{delays[int(len(delays) * 0.95)]:,.0f} ms"},
    )


EXPERIMENT = Experiment("P23", "adaptive micro-batches", run)
