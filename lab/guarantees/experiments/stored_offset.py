"""P05, exactly once by storing output and offset together.

Result and offset are written in one transaction of one database, and the consumer asks that database, not Kafka, where
to continue. At whichever statement it dies, either both are there or neither. The archive works like this (one Delta
commit has rows and offsets), and so do transactions of Kafka (P14).
"""

import sqlite3
from collections.abc import Callable, Sequence

from confluent_kafka import Message, TopicPartition

from lab.guarantees.child import die, run_with_kills
from lab.guarantees.clients import consumer, until_end
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Result, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection

STATEMENTS = ("none", "begin", "output", "position", "commit")
TABLES = (
    "CREATE TABLE IF NOT EXISTS output (value INTEGER)",
    "CREATE TABLE IF NOT EXISTS position (only INTEGER PRIMARY KEY CHECK (only = 1), next INTEGER)",
)


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Kill it after every statement, one after the other."""
    topic, place = setup.numbered("p05"), setup.file("p05.db")
    task = {"kafka": setup.kafka, "topic": topic, "database": str(place)}
    deaths = [(at, STATEMENTS[count % len(STATEMENTS)]) for count, at in enumerate(setup.kills("p05"))]
    killed = run_with_kills(__name__, task, deaths)
    database = sqlite3.connect(place)
    rows = [value for (value,) in database.execute("SELECT value FROM output ORDER BY rowid")]
    database.close()
    sent = setup.size.records
    return [
        Result(
            "output and position in one transaction",
            "kill -9 after each statement",
            sent,
            count_numbers(sent, rows),
            {"faults": exactly(len(deaths))},
            {"faults": killed},
        )
    ]


def child_main(kafka: KafkaConnection, topic: str, database: str, kill_at: tuple[int, str] | None) -> None:
    """Run a consumer that continues where the database says."""
    rows = sqlite3.connect(database, isolation_level=None)
    for table in TABLES:
        rows.execute(table)
    [stands] = rows.execute("SELECT coalesce(max(next), 0) FROM position").fetchone()
    reader = consumer(kafka, topic)
    reader.assign([TopicPartition(topic, 0, stands)])
    for message in until_end(reader):
        number = int(message.value() or b"")

        def passed(statement: str, number: int = number) -> None:
            if kill_at is not None and (number, statement) == kill_at:
                die()

        work(rows, message, number, passed)
    reader.close()
    rows.close()


def work(rows: sqlite3.Connection, message: Message, number: int, passed: Callable[[str], None]) -> None:
    """One transaction: the output, and where to go on."""
    passed("none")
    rows.execute("BEGIN")
    passed("begin")
    rows.execute("INSERT INTO output VALUES (?)", (number,))
    passed("output")
    rows.execute("INSERT OR REPLACE INTO position VALUES (1, ?)", ((message.offset() or 0) + 1,))
    passed("position")
    rows.execute("COMMIT")
    passed("commit")


EXPERIMENT = Experiment("P05", "exactly once by storing output and position together", run)
