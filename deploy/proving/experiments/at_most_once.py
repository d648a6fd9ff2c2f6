"""P01, at most once: the position is committed before the record is worked off.

A consumer that says "done" first and works afterwards has nothing to come back to when it dies in between: the group
goes on behind a record that nobody has worked off. Each of the kills loses one record, and none is ever worked off
twice. Nothing in Galatea reads like this.
"""

from collections.abc import Sequence
from pathlib import Path

from deploy.proving.child import die
from deploy.proving.counting import tally
from deploy.proving.experiment import Experiment
from deploy.proving.ground import Ground
from deploy.proving.journal import worked, write
from deploy.proving.line import Line, exactly
from deploy.proving.lives import lives
from deploy.proving.reading import commit, resumed, until_end


def run(ground: Ground) -> Sequence[Line]:
    """Kill the consumer between its two steps, again and again."""
    topic, journal = ground.numbered("p01"), ground.file("p01.txt")
    task = {"bootstrap": ground.bootstrap, "topic": topic, "group": topic, "journal": str(journal)}
    killed = lives(__name__, task, ground.deaths("p01"))
    return [
        Line(
            "at most once: commit, then work",
            "kill -9 between the two",
            ground.size.records,
            tally(ground.size.records, worked(journal)),
            {"lost": exactly(ground.size.faults), "faults": exactly(ground.size.faults)},
            {"faults": killed},
        )
    ]


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
