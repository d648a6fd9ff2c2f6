"""P18, consumer groups: members of one group share the partitions, and every group gets every record.

Three processes of one group get two of six partitions each; together they process every record once. One is killed with
five processed but uncommitted records: its partitions move to the others, which start at its last commit, so exactly
these five are repeated and none is lost. Three separate groups, in contrast, read all records each. Archive and speed
layer read the same topics in this way.
"""

import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lab.guarantees.child import append, die, processed, start_child
from lab.guarantees.clients import Options, consumer, flush, producer, until_end
from lab.guarantees.experiment import Experiment, ExperimentSetup, await_that
from lab.guarantees.results import ANY, Counts, Result, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection

PARTITIONS, MEMBERS, EACH = 6, 3, 2
PORTION, UNCOMMITTED, DIES_AFTER = 10, 5, 50
COOPERATIVE: Options = {
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 500,
}


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Balance with a death, and broadcast."""
    return [_balanced(setup), _broadcast(setup)]


def _balanced(setup: ExperimentSetup) -> Result:
    sent, topic = setup.size.records, setup.topic("p18", PARTITIONS)
    journals = [setup.file(f"p18-{member}") for member in range(MEMBERS)]
    tasks = [
        {
            "kafka": setup.kafka,
            "topic": topic,
            "journal": str(journal),
            "kill_at": DIES_AFTER if first else None,
        }
        for first, journal in zip((True, False, False), journals, strict=True)
    ]
    with ExitStack() as running:
        members = [running.enter_context(start_child(__name__, task)) for task in tasks]
        for member in members:
            running.callback(member.kill)
        await_that(lambda: all(_assigned(each) == EACH for each in journals), "the partitions were not shared evenly")
        _fill(setup, topic, sent)
        await_that(lambda: members[0].poll() is not None, "the first member was not killed")
        moved = _assigned(journals[0])
        await_that(lambda: _done(journals) >= sent or _have_ended(members[1:]), "records were not processed")
        survivors = sum(_assigned(each) for each in journals[1:])
    lines = [processed(journal) for journal in journals]
    everything = count_numbers(sent, [number for each in lines for number in each])
    return Result(
        "one group of three members",
        "one member killed",
        sent,
        everything,
        {"duplicated": exactly(UNCOMMITTED), "reordered": ANY, "partitions moved": exactly(EACH)},
        {"partitions moved": moved * (survivors == PARTITIONS)},
    )


def _broadcast(setup: ExperimentSetup) -> Result:
    topic = setup.numbered("p18-groups", PARTITIONS)
    sent, counts = setup.size.records, Counter[int]()
    for group in range(MEMBERS):
        reader = consumer(setup.kafka, setup.name(f"p18-group-{group}"))
        reader.subscribe([topic])
        counts.update(int(message.value() or b"") for message in until_end(reader, PARTITIONS))
        reader.close()
    lost = sum(counts[number] < MEMBERS for number in range(sent))
    return Result(
        "three groups",
        "none",
        sent,
        Counts(lost, 0, 0),
        {"given": exactly(MEMBERS * sent)},
        {"given": counts.total()},
    )


def child_main(kafka: KafkaConnection, topic: str, journal: str, kill_at: int | None) -> None:
    """A member until it is ended: works records off, and commits every ten of them."""
    reader = consumer(kafka, topic, COOPERATIVE)
    held: set[int] = set()

    def given(_reader: Consumer, places: list[TopicPartition]) -> None:
        held.update(place.partition for place in places)
        _tell(journal, len(held))

    def taken(_reader: Consumer, places: list[TopicPartition]) -> None:
        held.difference_update(place.partition for place in places)
        _tell(journal, len(held))

    reader.subscribe([topic], on_assign=given, on_revoke=taken)
    done = 0
    with Path(journal).open("a") as file:
        while True:
            message = reader.poll(1)
            if message is None or message.error():
                continue
            append(file, int(message.value() or b""))
            done += 1
            if kill_at is not None and done == kill_at + UNCOMMITTED:
                die()
            if done % PORTION == 0:
                with suppress(KafkaException):  # during a rebalance; the next commit includes these offsets
                    reader.commit(asynchronous=False)


def _tell(journal: str, held: int) -> None:
    """How many partitions this member has now."""
    part = Path(f"{journal}.part")
    part.write_text(str(held))
    part.replace(f"{journal}.held")


def _assigned(journal: Path) -> int:
    held = Path(f"{journal}.held")
    return int(held.read_text()) if held.exists() else 0


def _done(journals: Sequence[Path]) -> int:
    return len({number for journal in journals for number in processed(journal)})


def _have_ended(members: Sequence[subprocess.Popen[bytes]]) -> bool:
    return any(member.poll() is not None for member in members)


def _fill(setup: ExperimentSetup, topic: str, sent: int) -> None:
    """The numbers, in turn over all partitions, so that each member has enough of them."""
    sender = producer(setup.kafka, acks="all", enable_idempotence=True, batch_num_messages=1000)
    for number in range(sent):
        sender.produce(topic, str(number).encode(), partition=number % PARTITIONS)
        sender.poll(0)
    flush(sender)


EXPERIMENT = Experiment("P18", "a group balances, several groups broadcast", run)
