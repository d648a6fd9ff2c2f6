"""What is committed of a partition: positions, and beside each, in the same transaction, the ids of what was read.

Reads one partition of every source, in order and from places that it is told: assigned, never a member.

Whether an open transaction holds the readers of alerts back, and for how long: they see nothing behind its begin.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import msgspec
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from master_dataset.errors import BrokerUnavailableError, OperatorError
from speed_layer.alerts.fold import LogRecord
from views.alerts.alert import ALERTS_TOPIC, PROCESSOR_GROUP

if TYPE_CHECKING:
    from master_dataset.parsing.parse import Headers


class TopicIdentity(NamedTuple):
    """What a topic is. One that is made anew has another id; its partitions decide where a store lies."""

    id: str
    partitions: int


class CommittedPositions(NamedTuple):
    """`positions`: of topics that have one. `ids`: of these what each was; none where an operator has set the position.

    `read`: every topic that was read when any of them was committed.
    """

    positions: dict[str, int]
    ids: Mapping[str, str]
    read: Collection[str]


def encode_topic_ids(logs: Mapping[str, TopicIdentity]) -> str:
    """What is said beside each position: all topics, as Kafka forgets the position of one that is deleted."""
    return msgspec.json.encode({topic: log.id for topic, log in logs.items()}).decode()


def parse_committed(places: Iterable[TopicPartition]) -> CommittedPositions:
    """What Kafka answers, of one partition of each topic."""
    found, ids, read = dict[str, int](), dict[str, str](), set[str]()
    for place in places:
        if place.offset >= 0:
            found[place.topic] = place.offset
            with suppress(msgspec.DecodeError):  # somebody else's words
                said = msgspec.json.decode(place.metadata or "{}", type=dict[str, str])
                read |= said.keys()
                ids |= {topic: id_ for topic, id_ in said.items() if topic == place.topic}
    return CommittedPositions(found, ids, read)


MOST_RECORDS = 500
PATIENCE_SECONDS = 0.2
CALL_SECONDS = 20.0
_LOST = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name


Answer = TypeVar("Answer")
log = structlog.get_logger()


class SourceRecord(NamedTuple):
    """A record of a source; None as `entry`: the end of what there is now lies at `next_offset`."""

    topic: str
    next_offset: int
    entry: LogRecord | None


class RecordsLostError(OperatorError):
    """Records of a topic that were to come are deleted."""

    def __init__(self, topic: str, partition: int) -> None:
        """`topic`, `partition`: where."""
        self.topic = topic
        what = f"records of `{topic}/{partition}` are gone before alerts have read them"
        super().__init__(what, do="see docs/how-to/alerts.md, When records are gone")


class _Named(msgspec.Struct):
    alert_id: str


class PartitionReader:
    """Of one partition. Every call raises BrokerUnavailableError when the broker does not answer."""

    def __init__(self, bootstrap: str, topics: Sequence[str], partition: int) -> None:
        """`topics`: of the sources."""
        self.topics, self.partition = topics, partition
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": PROCESSOR_GROUP,
                "client.id": "galatea-alerts",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 2,
                "error_cb": lambda _: None,
            }
        )
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})

    @property
    def group(self) -> object:
        """What a transaction needs to commit positions of this group."""
        return self._consumer.consumer_group_metadata()

    def committed(self) -> CommittedPositions:
        """How far each topic is read, as far as anybody knows."""
        places = [TopicPartition(topic, self.partition) for topic in self.topics]
        found = self._asked(lambda: self._consumer.committed(places, CALL_SECONDS))
        return parse_committed(found)

    def logs(self) -> dict[str, TopicIdentity]:
        """What each topic is."""
        asked = self._asked(lambda: self._admin.describe_topics(TopicCollection(list(self.topics))))
        found = {topic: self._asked(partial(told.result, CALL_SECONDS)) for topic, told in asked.items()}
        return {topic: TopicIdentity(str(each.topic_id), len(each.partitions)) for topic, each in found.items()}

    def bounds(self, topic: str) -> tuple[int, int]:
        """The first offset that is there, and the end."""
        place = TopicPartition(topic, self.partition)
        return self._asked(lambda: self._consumer.get_watermark_offsets(place, CALL_SECONDS))

    def go_to(self, positions: Mapping[str, int]) -> None:
        """Read on from there."""
        self._consumer.assign([TopicPartition(topic, self.partition, at) for topic, at in positions.items()])

    def take(self) -> list[SourceRecord]:
        """What is there, without waiting for more than there is. RecordsGone."""
        found = self._asked(lambda: self._consumer.consume(MOST_RECORDS, PATIENCE_SECONDS))
        return [read for message in found if (read := self._read(message)) is not None]

    def known_alerts(self, beat: Callable[[], None]) -> Iterator[tuple[str, int]]:
        """The id of every alert that is committed, to the end of the topic, and when it was received.

        None that is deleted meanwhile.
        """
        at, end = self.bounds(ALERTS_TOPIC)
        self.go_to({ALERTS_TOPIC: at})
        while at < end:
            beat()
            try:
                taken = self.take()
            except RecordsLostError:
                at = self.bounds(ALERTS_TOPIC)[0]
                self.go_to({ALERTS_TOPIC: at})
                continue
            for read in taken:
                at = max(at, read.next_offset)
                if read.entry is not None and (id_ := self._id_of(read.entry)):
                    yield id_, read.entry.received_ms

    def close(self) -> None:
        """Read nothing more."""
        self._consumer.close()

    def _id_of(self, entry: LogRecord) -> str | None:
        """None: no alert. Somebody else wrote it, and it keeps nobody from telling what is one."""
        try:
            return msgspec.json.decode(entry.value, type=_Named).alert_id if entry.value else None
        except msgspec.DecodeError as error:
            log.warning("alerts.no_alert", partition=self.partition, offset=entry.offset, why=str(error))
            return None

    def _read(self, message: Message) -> SourceRecord | None:
        topic, offset = message.topic() or "", message.offset() or 0
        error = message.error()
        if error is None:
            headers = cast("Headers", message.headers() or ())
            entry = LogRecord(offset, message.timestamp()[1], message.value(), headers)
            return SourceRecord(topic, offset + 1, entry)
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
            return SourceRecord(topic, offset, None)
        if error.code() in _LOST:
            raise RecordsLostError(topic, self.partition)
        return None

    def _asked(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except KafkaException as error:
            raise BrokerUnavailableError(f"alerts cannot read: {error}", do="galatea status") from error


LONGEST_SECONDS = 45.0
"""The broker aborts a transaction that is open for 30 s, and looks for such ones every 10 s."""


class TransactionLag(NamedTuple):
    """`records`: behind open transactions, whether aborted ones or ends of others among them or not."""

    records: int
    seconds: float

    @property
    def is_too_long(self) -> bool:
        """Nobody has ended it who should have."""
        return self.seconds > LONGEST_SECONDS


class TransactionMonitor:
    """Looks again and again."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._since: dict[int, tuple[int, float]] = {}

    def look(self, ends: Mapping[int, int], stable_ends: Mapping[int, int], now: float) -> TransactionLag:
        """`ends`, `stable_ends`: of each partition, the last record and the last that readers may see. `now`: in s.

        A stable end that has moved since is another transaction's.
        """
        before, self._since = self._since, {}
        for partition, end in ends.items():
            stable = stable_ends.get(partition, end)
            if stable < end:
                seen, since = before.get(partition, (stable, now))
                self._since[partition] = (stable, since if seen == stable else now)
        longest = max((now - since for _, since in self._since.values()), default=0.0)
        return TransactionLag(sum(ends[each] - stable for each, (stable, _) in self._since.items()), longest)
