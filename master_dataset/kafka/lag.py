"""How far a reader is behind its topics, by the positions that it records itself.

A position can lie before the end although nothing is left to read, because transaction markers and aborted records
take offsets too. So if a position is not at the end, the next committed record is fetched. Its timestamp shows since
when the reader has been behind; if there is none, there is no lag.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Self

from cassandra.query import BatchStatement, BatchType
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.client_errors import NO_RIGHT, explained
from master_dataset.kafka.record import PartitionId
from master_dataset.kafka.topics import Topics

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from master_dataset.kafka.connection import KafkaConnection

Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset; everything before it is read."""

PROBE_SECONDS = 10.0
_POLL_SECONDS = 0.5


class UnreadRecord(NamedTuple):
    """The oldest unread record of a partition: its offset, and the broker's timestamp."""

    offset: int
    received_at: datetime


@dataclass(frozen=True)
class Lag:
    """The lag of one partition. `end`: offset after the last committed record. `oldest`: None if all are read."""

    topic: str
    partition: int
    position: int
    end: int
    oldest: UnreadRecord | None

    @property
    def records(self) -> int:
        """Offsets left to read. Offsets between records that carry none are counted too."""
        return max(self.end - self.oldest.offset, 1) if self.oldest else 0

    def seconds(self, now: datetime) -> float:
        """How long the oldest unread record has been waiting, in seconds."""
        return max((now - self.oldest.received_at) / timedelta(seconds=1), 0.0) if self.oldest else 0.0


class LagProbe:
    """Measures lag. Joins no group and commits nothing."""

    def __init__(self, kafka: "KafkaConnection") -> None:
        """`kafka`: the cluster."""
        self._topics = Topics(kafka)
        self._consumer = Consumer(
            {
                **kafka.client(),
                "group.id": "galatea.lag",  # the client requires one; it is never joined
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "queued.min.messages": 1,
                "queued.max.messages.kbytes": 64,
                "fetch.message.max.bytes": 16_384,
            }
        )

    def __enter__(self) -> Self:
        """Connections are opened on first use."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._consumer.close()

    def measure(self, topics: Iterable[str], positions: Offsets) -> list[Lag]:
        """Measure the lag of every partition.

        Raises:
            BrokerUnavailableError: The broker does not respond within PROBE_SECONDS.
        """
        try:
            found = [
                (topic, partition, positions.get(topic, {}).get(partition, 0), end)
                for topic, ends in self._topics.all_committed_ends(list(topics)).items()
                for partition, end in sorted(ends.items())
            ]
            behind = {(topic, partition): at for topic, partition, at, end in found if at < end}
            oldest = self._oldest(behind) if behind else {}
        except KafkaException as error:
            message = f"the lag could not be measured: {error.args[0].str()}"
            raise BrokerUnavailableError(message, do="galatea status") from error
        return [Lag(*each, oldest=oldest.get(each[:2])) for each in found]

    def _oldest(self, behind: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], UnreadRecord]:
        """The first committed record at or after each of these offsets; a partition without one is left out."""
        self._consumer.assign([TopicPartition(topic, partition, at) for (topic, partition), at in behind.items()])
        found: dict[tuple[str, int], UnreadRecord] = {}
        open_partitions = set(behind)
        deadline = time.monotonic() + PROBE_SECONDS
        try:
            while open_partitions:
                if time.monotonic() > deadline:
                    raise BrokerUnavailableError(
                        f"no answer for {sorted(open_partitions)} in time", do="galatea status"
                    )
                read = self._consumer.poll(_POLL_SECONDS)
                if read is None:
                    continue
                id_ = (read.topic() or "", read.partition() or 0)
                if _is_record(read) and id_ in open_partitions:
                    found[id_] = UnreadRecord(read.offset() or 0, _stamp(read))
                if id_ in open_partitions:
                    # Of a batch that is larger than a fetch, the broker only sends that of the first partition.
                    self._consumer.incremental_unassign([TopicPartition(*id_)])
                    open_partitions.remove(id_)
        finally:
            self._consumer.unassign()
        return found


def _is_record(message: Message) -> bool:
    """Whether this is a record and not the end of its partition. KafkaException for anything else."""
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name for it
        raise KafkaException(error)
    return error is None


def _stamp(message: Message) -> datetime:
    return datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)


class LagTable:
    """The Cassandra table `lag`, which serving reads: the last measurement of each reader, topic and partition."""

    def __init__(self, session: "Session", reader: str, release: str = "") -> None:
        """`session` uses Galatea's keyspace. `release`: the version of the reader's program, so that others see it."""
        self._session, self._reader, self._release = session, reader, release
        self._insert = session.prepare(
            "INSERT INTO lag (reader, topic, partition, position, end_offset, records, oldest_at, moved_at, "
            "measured_at, release) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._moved: dict[PartitionId, tuple[int, datetime]] = {}
        rows = session.execute(
            session.prepare("SELECT topic, partition, position, moved_at FROM lag WHERE reader = ?"), (reader,)
        )
        for row in rows:
            self._moved[row.topic, row.partition] = (row.position, row.moved_at)

    def write(self, measured: Iterable[Lag], now: datetime) -> None:
        """Replace the last measurement. A restart does not count as a move of the position."""
        measured = list(measured)
        self._moved = last_moves(self._moved, measured, now)
        if not measured:
            return
        batch = BatchStatement(BatchType.UNLOGGED)  # its rows are of one partition, the reader's
        for each in measured:
            place = (each.topic, each.partition)
            oldest_at = each.oldest.received_at if each.oldest else None
            values = (each.position, each.end, each.records, oldest_at, self._moved[place][1], now, self._release)
            batch.add(self._insert, (self._reader, *place, *values))
        self._session.execute(batch)


def last_moves(
    before: Mapping[PartitionId, tuple[int, datetime]], measured: Iterable[Lag], now: datetime
) -> dict[PartitionId, tuple[int, datetime]]:
    """Return each position, and since when it has not moved, as far as measurements show."""
    found = {}
    for each in measured:
        place = (each.topic, each.partition)
        last = before.get(place)
        found[place] = last if last is not None and last[0] == each.position else (each.position, now)
    return found


_TIMEOUT_SECONDS = 5.0
_ANSWER_SECONDS = 0.05
"""How often to look for the answer to a commit: `poll` does not return earlier because of one."""


class ConsumerGroup:
    """Positions published as a consumer group without members, so that ordinary Kafka tools show them.

    Galatea never reads them back. They are committed by a consumer that joins no group: if a broker ends meanwhile, the
    admin client may never reach the coordinator again, or ends the process (librdkafka issue 4605).
    """

    def __init__(self, kafka: "KafkaConnection", name: str) -> None:
        """`kafka`: the cluster."""
        self._kafka, self.name = kafka, name
        options = {"group.id": name, "enable.auto.commit": False, "on_commit": self._note}
        self._consumer = Consumer({**kafka.client(), **options})
        self._committed: dict[PartitionId, int] = {}
        self._answers: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        self._trouble: KafkaError | None = None  # of the client, which says it once; until a commit is answered

    def commit(self, positions: Mapping[str, Mapping[int, int]]) -> None:
        """Commit positions, unless none has moved.

        Raises:
            BrokerUnavailableError: They could not be committed.
        """
        offsets = {(topic, partition): at for topic, own in positions.items() for partition, at in own.items()}
        if offsets == self._committed:
            return
        try:
            self._consumer.commit(offsets=[TopicPartition(*id_, at) for id_, at in offsets.items()], asynchronous=True)
            error = self._error_for(offsets)
        except KafkaException as raised:
            error = raised.args[0]
        if error is not None:
            raise explained(error, self._kafka, f"commit the positions of `{self.name}`")
        self._committed = offsets

    def _note(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self._answers.append((error, partitions))

    def _error_for(self, offsets: Mapping[PartitionId, int]) -> KafkaError | None:
        """Wait for the answer to this commit; None if it succeeded. Others are late answers to former ones."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            said = self._consumer.poll(_ANSWER_SECONDS)
            if said is not None and said.error() is not None:
                self._trouble = said.error()
            while self._answers:
                error, partitions = self._answers.pop(0)
                if {(each.topic, each.partition): each.offset for each in partitions} == offsets:
                    self._trouble = None
                    return error or next((each.error for each in partitions if each.error), None)
            if self._trouble is not None and self._trouble.code() in NO_RIGHT:
                break
        return self._trouble or KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - the client's public name for it
