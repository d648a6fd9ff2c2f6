"""P01, at most once: the position is committed before the record is worked off.

A consumer that says "done" first and works afterwards has nothing to come back to when it dies in between: the group
goes on behind a record that nobody has worked off. Each of the kills loses one record, and none is ever worked off
twice. Nothing in Galatea reads like this.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.guarantees.child import die, lives, worked, write
from lab.guarantees.clients import commit, resumed, until_end
from lab.guarantees.experiment import Experiment, Ground
from lab.guarantees.results import Bound, Line, exactly, tally


def run(ground: Ground) -> Sequence[Line]:
    """Kill the consumer between its two steps, again and again."""
    lost = {"lost": exactly(ground.size.faults)}
    return [killed_between(ground, __name__, "p01", "at most once: commit, then work", lost)]


def killed_between(ground: Ground, module: str, name: str, mode: str, expected: Mapping[str, Bound]) -> Line:
    """Let the consumer of that experiment die between its two steps, and count what its lives have worked off."""
    size, topic, journal = ground.size, ground.numbered(name), ground.file(name)
    task = {"bootstrap": ground.bootstrap, "topic": topic, "group": topic, "journal": str(journal)}
    killed, bounds = lives(module, task, ground.deaths(name)), {**expected, "faults": exactly(size.faults)}
    found = tally(size.records, worked(journal))
    return Line(mode, "kill -9 between the two", size.records, found, bounds, {"faults": killed})


def live(bootstrap: str, topic: str, group: str, journal: str, dies_at: int | None) -> None:
    """One life: commit, then work."""
    reader = resumed(bootstrap, group, topic)
    with Path(journal).open("a") as file:
        for message in until_end(reader):
            number = int(message.value() or b"")
            commit(reader, message)
            if number == dies_at:
                die()
            write(file, number)
    reader.close()


EXPERIMENT = Experiment("P01", "at most once: commit before processing", run)
