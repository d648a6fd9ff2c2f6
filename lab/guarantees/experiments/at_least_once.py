"""P02, at least once: the record is worked off before the position is committed.

Whoever dies between the two finds the record again and works it off a second time: each kill duplicates one, and none
is lost. Archive and speed read like this; what comes twice is made harmless behind it (P04, P05).
"""

from collections.abc import Sequence
from pathlib import Path

from lab.guarantees.child import die, write
from lab.guarantees.clients import commit, resumed, until_end
from lab.guarantees.experiment import Experiment, Ground
from lab.guarantees.experiments.at_most_once import killed_between
from lab.guarantees.results import Line, exactly


def run(ground: Ground) -> Sequence[Line]:
    """P01 with its two steps in the other order."""
    duplicated = {"duplicated": exactly(ground.size.faults)}
    return [killed_between(ground, __name__, "p02", "at least once: work, then commit", duplicated)]


def live(bootstrap: str, topic: str, group: str, journal: str, dies_at: int | None) -> None:
    """One life: work, then commit."""
    reader = resumed(bootstrap, group, topic)
    with Path(journal).open("a") as file:
        for message in until_end(reader):
            number = int(message.value() or b"")
            write(file, number)
            if number == dies_at:
                die()
            commit(reader, message)
    reader.close()


EXPERIMENT = Experiment("P02", "at least once: commit after processing", run)
