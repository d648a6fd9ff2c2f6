"""P16, zombie fencing: of two owners of one transactional id, the older one can do nothing more.

A process that is presumed dead (it was only paused) has an open transaction; another one takes over and copies the same
records. With one transactional id, `init_transactions` of the new owner raises the epoch: the transaction of the old
one is aborted and its commit is rejected for good. With an id per process, the broker cannot know that they are the
same: both commit, and every record is duplicated. So an id belongs to the work (a partition), never to the process.
"""

from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer

from lab.guarantees.clients import flush, numbers, producer
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Result, count_numbers, exactly

RECORDS = 10


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """One id for both, and one for each."""
    return [
        _line(setup, "one transactional id", ("p16", "p16"), {"fenced": 1}),
        _line(
            setup, "an id for each process", ("p16-a", "p16-b"), {"fenced": 0, "duplicated": RECORDS, "reordered": 1}
        ),
    ]


def _line(setup: ExperimentSetup, mode: str, ids: tuple[str, str], expected: dict[str, int]) -> Result:
    topic = setup.topic("-".join(("of", *ids)))
    paused = _begun(setup, topic, ids[0])
    successor = _begun(setup, topic, ids[1])
    successor.commit_transaction(60)
    fenced = _is_fenced(paused)
    seen = numbers(setup.kafka, topic)
    return Result(
        mode,
        "paused with an open transaction, replaced, wakes up",
        RECORDS,
        count_numbers(RECORDS, *seen),
        {name: exactly(number) for name, number in expected.items()},
        {"fenced": int(fenced)},
    )


def _begun(setup: ExperimentSetup, topic: str, id_: str) -> Producer:
    """Has sent all records in a transaction that is open."""
    sender = producer(setup.kafka, transactional_id=setup.name(id_))
    sender.init_transactions(60)
    sender.begin_transaction()
    for number in range(RECORDS):
        sender.produce(topic, str(number).encode())
    flush(sender)
    return sender


def _is_fenced(sender: Producer) -> bool:
    """Whether its commit is refused because another has taken over, which is fatal for it."""
    try:
        sender.commit_transaction(60)
    except KafkaException as error:
        return bool(error.args[0].fatal())
    return False


EXPERIMENT = Experiment("P16", "zombie fencing by the transactional id", run)
