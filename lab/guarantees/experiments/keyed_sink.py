"""P04, exactly once by idempotent processing: at least once into a sink that overwrites by identity.

The consumer of P02 dies in the same places and writes the same records twice. But its sink keeps one row for each
identity, so the second time changes nothing. Speed rows (overwritten by key), the archive (a micro-batch has a number)
and the switch of a publication (only from N) work like this.
"""

import sqlite3
from collections.abc import Sequence

from lab.guarantees.child import die, lives
from lab.guarantees.clients import commit, resumed, until_end
from lab.guarantees.experiment import Experiment, Ground
from lab.guarantees.results import Line, exactly, tally

TABLE = "CREATE TABLE IF NOT EXISTS sink (identity TEXT PRIMARY KEY, value INTEGER, writes INTEGER)"
WRITE = "INSERT INTO sink VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET value = excluded.value, writes = writes + 1"


def run(ground: Ground) -> Sequence[Line]:
    """Kill it where P02 is killed, and count rows."""
    topic, place = ground.numbered("p04"), ground.file("p04.db")
    task = {"bootstrap": ground.bootstrap, "topic": topic, "group": topic, "sink": str(place)}
    killed = lives(__name__, task, ground.deaths("p04"))
    sink = sqlite3.connect(place)
    rows = sink.execute("SELECT value, writes FROM sink ORDER BY rowid").fetchall()
    sink.close()
    return [
        Line(
            "at least once into a sink by identity",
            "kill -9 between work and commit",
            ground.size.records,
            tally(ground.size.records, [value for value, _ in rows]),
            {"written twice": exactly(ground.size.faults), "faults": exactly(ground.size.faults)},
            {"written twice": sum(writes - 1 for _, writes in rows), "faults": killed},
        )
    ]


def live(bootstrap: str, topic: str, group: str, sink: str, dies_at: int | None) -> None:
    """One life: write by identity, then commit."""
    reader, rows = resumed(bootstrap, group, topic), sqlite3.connect(sink, isolation_level=None)
    rows.execute(TABLE)
    for message in until_end(reader):
        number = int(message.value() or b"")
        rows.execute(WRITE, (message.key(), number))
        if number == dies_at:
            die()
        commit(reader, message)
    rows.close()
    reader.close()


EXPERIMENT = Experiment("P04", "exactly once by idempotent processing", run)
