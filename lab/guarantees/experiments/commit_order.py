"""P01, at most once, and P02, at least once: the order of committing an offset and processing its record.

P01: a consumer that commits first cannot go back if it dies before it has processed the record: the group continues
after it. Each kill loses one record, and none is processed twice. Nothing in Galatea reads like this.

P02: a consumer that processes first gets the record again if it dies before it has committed: each kill duplicates one
record, and none is lost. Archive and speed layer read like this; later steps make duplicates harmless (P04, P05).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.guarantees.child import append, die, processed, run_with_kills
from lab.guarantees.clients import commit, resumed, until_end
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Bound, Result, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection


def at_most_once(setup: ExperimentSetup) -> Sequence[Result]:
    """Kill the consumer after each commit, before it processes the record."""
    lost = {"lost": exactly(setup.size.faults)}
    return [_killed_between(setup, "p01", "at most once: commit, then work", lost)]


def at_least_once(setup: ExperimentSetup) -> Sequence[Result]:
    """P01 with its two steps in the other order."""
    duplicated = {"duplicated": exactly(setup.size.faults)}
    return [_killed_between(setup, "p02", "at least once: work, then commit", duplicated)]


def _killed_between(setup: ExperimentSetup, name: str, mode: str, expected: Mapping[str, Bound]) -> Result:
    size, topic, journal = setup.size, setup.numbered(name), setup.file(name)
    task = {"kafka": setup.kafka, "topic": topic, "journal": str(journal), "commits_first": name == "p01"}
    killed = run_with_kills(__name__, task, setup.kills(name))
    found = count_numbers(size.records, processed(journal))
    bounds = {**expected, "faults": exactly(size.faults)}
    return Result(mode, "kill -9 between the two", size.records, found, bounds, {"faults": killed})


def child_main(kafka: KafkaConnection, topic: str, journal: str, kill_at: int | None, *, commits_first: bool) -> None:
    """Run a consumer whose group is named as the topic; it dies between the two steps of the record `kill_at`."""
    reader = resumed(kafka, topic, topic)
    with Path(journal).open("a") as file:
        for message in until_end(reader):
            number = int(message.value() or b"")
            if commits_first:
                commit(reader, message)
            else:
                append(file, number)
            if number == kill_at:
                die()
            if commits_first:
                append(file, number)
            else:
                commit(reader, message)
    reader.close()


AT_MOST_ONCE = Experiment("P01", "at most once: commit before processing", at_most_once)
AT_LEAST_ONCE = Experiment("P02", "at least once: commit after processing", at_least_once)
