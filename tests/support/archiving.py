"""A topic and its archive without broker and Spark: the real parser, and the real tables in a folder of their own."""

import atexit
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from master_dataset.dead_letters.deliveries import ArchivedEvents
from master_dataset.dead_letters.queries import DeadLetterQueries
from master_dataset.dead_letters.replay import Replayer, ReplayRecord, SendReport
from master_dataset.dead_letters.replay_history import REPLAYS, ReplayTable
from master_dataset.dead_letters.table import SUMMARY_SCHEMA, DeadLetterTable
from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.producer import DeliveryStatus
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.rows import HEADERS, INSTANT, output_schema, rows
from master_dataset.sources import registered_sources, source_named
from tests.support.terms import default_terms

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TILLS = "pos_transactions"
DEAD_LETTER = pa.schema([*SUMMARY_SCHEMA, ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)])
NOT_OF_EVENTS = {"kind", "reason", "field", "sentence", "headers"}
Sent = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""Key, value, headers."""


@cache
def _empty() -> str:
    """A master dataset with the table of replays, which takes a while to create."""
    root = tempfile.mkdtemp(prefix="galatea-world-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    ReplayTable(root).create()
    return root


class WorldArchive:
    """Every topic has one partition here, and a record a second from NOON on."""

    def __init__(self) -> None:
        self.root = tempfile.mkdtemp(prefix="galatea-world-")
        weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)
        self.topics: dict[str, list[Sent]] = {}
        self.archived: dict[str, int] = {}

    def receive(
        self,
        *values: bytes | None,
        topic: str = TILLS,
        key: bytes | None = b"1",
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> list[RecordPosition]:
        """Append them to the topic, and archive them."""
        records = self.topics.setdefault(topic, [])
        first = len(records)
        records += [(key, value, headers) for value in values]
        self.catch_up()
        return [RecordPosition(topic, 0, first + number) for number in range(len(values))]

    def catch_up(self) -> None:
        """Archive whatever the topics hold, a commit for each table."""
        for topic, records in self.topics.items():
            first = self.archived.get(topic, 0)
            if first < len(records):
                self._archive(topic, first, records[first:])
                self.archived[topic] = len(records)

    def conflict(self, position: RecordPosition) -> None:
        """A rebuild finds that this event repeats the identity of another one with another content."""
        key, value, _ = self.topics[position.topic][position.offset]
        row = {
            **position._asdict(),
            "received_at": NOON + SECOND * position.offset,
            "reason": "conflicting_duplicate",
            "field": "",
            "sentence": "Another one was first.",
            "key": key,
            "value": value,
            "headers": None,
        }
        self._append("conflicts", pa.Table.from_pylist([row], DEAD_LETTER), "topic")

    def dead_letter_of(self, position: RecordPosition, table: str = "dead_letters") -> None:
        """Something is kept as a dead letter, whatever else it is."""
        row = {
            **position._asdict(),
            "received_at": NOON + SECOND * position.offset,
            "reason": "not_json",
            "field": "",
            "sentence": "It is no JSON.",
            "key": b"1",
            "value": b"{",
            "headers": None,
        }
        self._append(table, pa.Table.from_pylist([row], DEAD_LETTER), "topic")

    def again(self, topic: str = TILLS) -> None:
        """The archive has lost its checkpoint, and keeps everything once more."""
        self._archive(topic, 0, self.topics[topic])

    def _archive(self, topic: str, first: int, records: Sequence[Sent]) -> None:
        source = source_named(topic)
        listed = [[{"key": name, "value": said} for name, said in headers] for _, _, headers in records]
        columns = {
            "key": pa.array([key for key, _, _ in records], pa.binary()),
            "value": pa.array([value for _, value, _ in records], pa.binary()),
            "topic": pa.array([topic] * len(records), pa.string()),
            "partition": pa.array([0] * len(records), pa.int32()),
            "offset": pa.array(range(first, first + len(records)), pa.int64()),
            "timestamp": pa.array([NOON + SECOND * (first + position) for position in range(len(records))], INSTANT),
            "headers": pa.array(listed, HEADERS),
        }
        batches = rows(source, iter([pa.RecordBatch.from_pydict(columns)]), default_terms)
        parsed = pa.Table.from_batches(batches, output_schema(source))
        of_events = [name for name in parsed.column_names if name not in NOT_OF_EVENTS]
        for kind, name, columns_of, by in (
            ("event", topic, of_events, "day"),
            ("dead_letter", "dead_letters", DEAD_LETTER.names, "topic"),
        ):
            found = parsed.filter(pc.equal(parsed["kind"], kind)).select(columns_of)
            if found.num_rows:
                self._append(name, found, by)

    def _append(self, name: str, found: pa.Table, by: str) -> None:
        if not (replays := Path(self.root) / REPLAYS).exists():
            shutil.copytree(Path(_empty()) / REPLAYS, replays)
        configuration = {"delta.appendOnly": "true", "delta.dataSkippingStatsColumns": "received_at"}
        path = Path(self.root) / name
        write_deltalake(path, found, mode="append", partition_by=[by], configuration=configuration)


class WorldSender:
    """Sends to the topics of an archive. `says`: the status of a record; `is_away`: nothing can be sent."""

    def __init__(self, archive: WorldArchive) -> None:
        self.archive = archive
        self.says: Callable[[ReplayRecord], DeliveryStatus] = lambda _: DeliveryStatus.ACKNOWLEDGED
        self.is_away = False
        self.carried: list[ReplayRecord] = []

    def check_topics(self, topics: Collection[str]) -> None:
        if self.is_away:
            raise BrokerUnavailableError(f"Nobody has {len(topics)} topics.", do="Wait.")
        for topic in set(topics) - set(registered_sources()):
            raise BrokerUnavailableError(f"There is no topic `{topic}`.", do="galatea up")

    def send(self, records: Sequence[ReplayRecord]) -> list[SendReport]:
        return [self._carried(record) for record in records]

    def _carried(self, record: ReplayRecord) -> SendReport:
        if (status := self.says(record)) is not DeliveryStatus.ACKNOWLEDGED:
            return SendReport(status)
        self.carried.append(record)
        topic = self.archive.topics.setdefault(record.topic, [])
        topic.append((record.key, record.value, record.headers))
        return SendReport(status, RecordPosition(record.topic, 0, len(topic) - 1))


class WorldDeadLetters:
    """Dead letters of an archive, looked at and sent again; what was sent is archived when the archive catches up."""

    def __init__(self) -> None:
        self.archive = WorldArchive()
        self.sender = WorldSender(self.archive)
        self.now = NOON + timedelta(hours=1)
        self.replays = ReplayTable(self.archive.root)
        table, events = DeadLetterTable(self.archive.root, self.replays), ArchivedEvents(self.archive.root)
        self.queries = DeadLetterQueries(table, self.replays, events)
        self.replaying = Replayer(table, self.replays, events, self.sender, lambda: self.now)
