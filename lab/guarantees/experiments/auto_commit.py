"""P03, auto-commit: the client periodically commits what it has delivered, processed or not.

(a) Records wait in a queue of the process while their offsets are already committed: a kill loses the queue. (b)
Records are processed while no commit is due yet: after a kill they are processed again. The same setting loses and
duplicates, so it guarantees nothing. A house rule forbids it everywhere except in this file.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition

from lab.guarantees.child import append, die, processed, run_with_kills
from lab.guarantees.clients import resumed
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import ANY, Bound, Result, at_least, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection

QUEUE, WORK_SECONDS = 50, 0.02
SOON_MS, LATE_MS = 100, 60_000
RECORDS = 100


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Kill it with a full queue behind a commit, and after work before a commit."""
    return [
        _line(setup, f"auto-commit every {SOON_MS} ms", "kill -9 with work queued", SOON_MS, {"lost": at_least(1)}),
        _line(
            setup,
            f"auto-commit every {LATE_MS // 1000} s",
            "kill -9 after work, before the next commit",
            LATE_MS,
            {"duplicated": at_least(1), "reordered": ANY},
        ),
    ]


def _line(setup: ExperimentSetup, mode: str, fault: str, interval_ms: int, expected: Mapping[str, Bound]) -> Result:
    name = f"p03-{interval_ms}"
    topic, journal = setup.numbered(name, count=RECORDS), setup.file(name)
    task = {
        "kafka": setup.kafka,
        "topic": topic,
        "group": topic,
        "journal": str(journal),
        "interval_ms": interval_ms,
    }
    killed, faults = run_with_kills(__name__, task, [True]), {"faults": exactly(1)}
    return Result(
        mode, fault, RECORDS, count_numbers(RECORDS, processed(journal)), {**expected, **faults}, {"faults": killed}
    )


def child_main(  # noqa: PLR0913, PLR0917 - a task
    kafka: KafkaConnection,
    topic: str,
    group: str,
    journal: str,
    interval_ms: int,
    kill_at: bool | None,  # noqa: FBT001 - a task
) -> None:
    """Run a consumer that fills a queue, works slowly, and lets the client commit."""
    committed = 0

    def heard(_error: KafkaError | None, places: list[TopicPartition]) -> None:
        nonlocal committed
        committed = max([committed, *(place.offset for place in places)])

    auto = {"enable.auto.commit": True, "auto.commit.interval.ms": interval_ms, "on_commit": heard}
    reader, queue, done = resumed(kafka, group, topic, auto), deque[int](), 0  # type: ignore[arg-type]
    with Path(journal).open("a") as file:
        more = True
        while more or queue:
            more = more and _take(reader, queue)
            if kill_at and queue and committed > done:
                die()  # (a): records in the queue are already committed
            if not queue:
                continue
            number = queue.popleft()
            time.sleep(WORK_SECONDS)
            append(file, number)
            done = number + 1
            if kill_at and interval_ms == LATE_MS and done > RECORDS // 4 > committed:
                die()  # (b): processed records are not committed yet
    reader.close()


def _take(reader: Consumer, queue: deque[int]) -> bool:
    """Fill the queue with what is there; whether there may be more to come."""
    while len(queue) < QUEUE:
        message = reader.poll(0 if queue else 0.1)
        if message is None:
            return True
        if message.error():
            return False
        queue.append(int(message.value() or b""))
    return True


EXPERIMENT = Experiment("P03", "auto-commit: no guarantee", run)
