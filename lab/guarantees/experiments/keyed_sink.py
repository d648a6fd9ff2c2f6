"""P04, exactly once by idempotent writes: at least once into a sink that overwrites by identity.

The consumer of P02 dies at the same places and writes the same records twice. But its sink keeps one row per identity,
so the second write changes nothing. Speed rows (overwritten by key), the archive (numbered micro-batches) and the
publication switch (compare-and-set from N) work like this.
"""

import sqlite3
from collections.abc import Sequence

from lab.guarantees.child import die, run_with_kills
from lab.guarantees.clients import commit, resumed, until_end
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Result, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection

TABLE = "CREATE TABLE IF NOT EXISTS sink (identity TEXT PRIMARY KEY, value INTEGER, writes INTEGER)"
WRITE = "INSERT INTO sink VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET value = excluded.value, writes = writes + 1"


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Kill it where P02 is killed, and count rows."""
    topic, place = setup.numbered("p04"), setup.file("p04.db")
    task = {"kafka": setup.kafka, "topic": topic, "group": topic, "sink": str(place)}
    killed = run_with_kills(__name__, task, setup.kills("p04"))
    sink = sqlite3.connect(place)
    rows = sink.execute("SELECT value, writes FROM sink ORDER BY rowid").fetchall()
    sink.close()
    return [
        Result(
            "at least once into a sink by identity",
            "kill -9 between work and commit",
            setup.size.records,
            count_numbers(setup.size.records, [value for value, _ in rows]),
            {"written twice": exactly(setup.size.faults), "faults": exactly(setup.size.faults)},
            {"written twice": sum(writes - 1 for _, writes in rows), "faults": killed},
        )
    ]


def child_main(kafka: KafkaConnection, topic: str, group: str, sink: str, kill_at: int | None) -> None:
    """Run a consumer: write by identity, then commit."""
    reader, rows = resumed(kafka, group, topic), sqlite3.connect(sink, isolation_level=None)
    rows.execute(TABLE)
    for message in until_end(reader):
        number = int(message.value() or b"")
        rows.execute(WRITE, (message.key(), number))
        if number == kill_at:
            die()
        commit(reader, message)
    rows.close()
    reader.close()


EXPERIMENT = Experiment("P04", "exactly once by idempotent processing", run)
