"""P01, at most once: the offset is committed before the record is processed.

A consumer that commits first cannot go back if it dies before it has processed the record: the group continues after
it. Each kill loses one record, and none is processed twice. Nothing in Galatea reads like this.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.guarantees.child import append, die, processed, run_with_kills
from lab.guarantees.clients import commit, resumed, until_end
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Bound, Result, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Kill the consumer between its two steps, again and again."""
    lost = {"lost": exactly(setup.size.faults)}
    return [killed_between(setup, __name__, "p01", "at most once: commit, then work", lost)]


def killed_between(setup: ExperimentSetup, module: str, name: str, mode: str, expected: Mapping[str, Bound]) -> Result:
    """Kill the consumer of that experiment between its two steps, and count what was processed."""
    size, topic, journal = setup.size, setup.numbered(name), setup.file(name)
    task = {"kafka": setup.kafka, "topic": topic, "group": topic, "journal": str(journal)}
    killed, bounds = (
        run_with_kills(module, task, setup.kills(name)),
        {**expected, "faults": exactly(size.faults)},
    )
    found = count_numbers(size.records, processed(journal))
    return Result(mode, "kill -9 between the two", size.records, found, bounds, {"faults": killed})


def child_main(kafka: KafkaConnection, topic: str, group: str, journal: str, kill_at: int | None) -> None:
    """Run a consumer: commit, then process."""
    reader = resumed(kafka, group, topic)
    with Path(journal).open("a") as file:
        for message in until_end(reader):
            number = int(message.value() or b"")
            commit(reader, message)
            if number == kill_at:
                die()
            append(file, number)
    reader.close()


EXPERIMENT = Experiment("P01", "at most once: commit before processing", run)
