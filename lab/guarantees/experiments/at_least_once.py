"""P02, at least once: the record is processed before its offset is committed.

A consumer that dies in between gets the record again and processes it twice: each kill duplicates one record, and none
is lost. Archive and speed layer read like this; later steps make duplicates harmless (P04, P05).
"""

from collections.abc import Sequence
from pathlib import Path

from lab.guarantees.child import append, die
from lab.guarantees.clients import commit, resumed, until_end
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.experiments.at_most_once import killed_between
from lab.guarantees.results import Result, exactly
from master_dataset.kafka.connection import KafkaConnection


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """P01 with its two steps in the other order."""
    duplicated = {"duplicated": exactly(setup.size.faults)}
    return [killed_between(setup, __name__, "p02", "at least once: work, then commit", duplicated)]


def child_main(kafka: KafkaConnection, topic: str, group: str, journal: str, kill_at: int | None) -> None:
    """Run a consumer: process, then commit."""
    reader = resumed(kafka, group, topic)
    with Path(journal).open("a") as file:
        for message in until_end(reader):
            number = int(message.value() or b"")
            append(file, number)
            if number == kill_at:
                die()
            commit(reader, message)
    reader.close()


EXPERIMENT = Experiment("P02", "at least once: commit after processing", run)
