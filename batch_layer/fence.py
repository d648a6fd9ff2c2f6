"""The fence (R2): waits until it is certain that nothing with a timestamp before a cut can still appear.

Wait until the clock has passed the cut and the skew; write a marker into every partition of every source; check that
the broker did not stamp it earlier (if its clock is behind by no more than the skew, wait and write markers again);
wait until the reader of the topic has passed it. An open transaction, an unreplicated record or an idle partition
cannot hide a record from that.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from master_dataset.errors import BrokerUnavailableError, CutNotReachedError, OperatorError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.client_errors import explained
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.topics import Topics
from master_dataset.parsing.parse import MARKER_HEADER
from views.core.cut import floor_to

Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset."""

_POLL_SECONDS = 0.1
_ATTEMPTS = 5
"""How often markers are written while the broker's clock is behind by less than the skew: it may step meanwhile."""


@dataclass(frozen=True)
class Marked:
    """The markers of one cut: a reader whose positions are behind all of them has read everything before the cut."""

    cut: datetime
    offsets: Offsets

    def passed_by(self, positions: Offsets) -> bool:
        """Whether a reader with these positions has read every marker."""
        return all(
            positions.get(topic, {}).get(partition, 0) > offset
            for topic, own in self.offsets.items()
            for partition, offset in own.items()
        )


@dataclass(frozen=True)
class Fence:
    """Makes cuts on one cluster.

    Attributes:
        kafka: The cluster.
        partitions: Reads how many partitions the topics have, of which a cut covers those that were open before it.
        topics: Those of the sources.
        epoch: A cut is a multiple of it.
        skew: How far clocks may differ.
        now: The clock.
    """

    kafka: KafkaConnection
    partitions: Callable[[], Partitions]
    topics: Iterable[str]
    epoch: timedelta
    skew: timedelta
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    _marked: dict[datetime, Marked] = field(default_factory=dict, repr=False, compare=False)

    def newest_cut(self) -> datetime:
        """The newest cut that the clock has already passed by the skew."""
        return floor_to(self.now() - self.skew, self.epoch)

    def next_cut(self) -> datetime:
        """The first cut that covers everything received before now."""
        return floor_to(self.now(), self.epoch) + self.epoch

    def mark(self, cut: datetime, waiting: Callable[[float], None] = lambda _: None) -> Marked:
        """Wait for the clock, then write the markers. `waiting` is called with the seconds that are left.

        Markers of a cut serve every reader, so they are written once. OperatorError if the broker's clock is behind
        this machine's by more than the skew.
        """
        if (known := self._marked.get(cut)) is not None:
            return known
        while (left := (cut + self.skew - self.now()).total_seconds()) > 0:
            waiting(left)
            time.sleep(min(left, 1.0))
        for attempt in range(1, _ATTEMPTS + 1):
            # Read after the clock has passed the cut: a partition that is announced later opens after the cut.
            sent = Markers(self.kafka).send(self.topics, self.partitions().covered(cut))
            early = {place: stamp for place, stamp in sent.stamps.items() if stamp < cut + self.skew}
            if not early:
                failpoint(Failpoint.REBUILD_MARKED)
                return self._marked.setdefault(cut, Marked(cut, sent.offsets))
            furthest = min(early, key=early.__getitem__)
            behind = cut + self.skew - early[furthest]
            if behind > self.skew or attempt == _ATTEMPTS:
                break
            # The broker's clock may be behind by the skew: it passes the cut later than ours.
            waiting(behind.total_seconds())
            time.sleep(behind.total_seconds())
        message = f"the broker stamped a marker in {furthest} too early for the cut `{cut}`, by {behind}"
        raise OperatorError(message, do="compare the brokers' clocks with this machine's; then run it again")

    def wait(self, marked: Marked, positions: Callable[[], Offsets], reader: str, timeout: timedelta) -> None:
        """Return when the reader has passed the markers. CutNotReachedError, naming the partition, after the timeout.

        OperatorError if it only seems to have passed them, because its positions belong to a different log.
        """
        deadline = time.monotonic() + timeout.total_seconds()
        while not marked.passed_by(found := positions()):
            if time.monotonic() > deadline:
                raise CutNotReachedError(
                    _behind(marked, found, reader), do=f"galatea status, then logs/{reader}.log; run it again"
                )
            time.sleep(_POLL_SECONDS)
        self._refuse_beyond(found, reader)

    def wait_for_all(self, positions: Callable[[], Offsets], reader: str, timeout: timedelta) -> None:
        """Wait until a reader has read everything that was acknowledged before the call.

        Markers are written only if it is behind: nobody waits for a reader of topics in which nothing happens.

        Args:
            positions: Reads how far it is.
            reader: Its name, for the error.
            timeout: How long to wait.

        Raises:
            CutNotReachedError: It is still behind.
            BrokerUnavailableError: Kafka does not respond.
            OperatorError: Its positions belong to a different log.
        """
        read, found = self.partitions().open, positions()  # nobody reads those that are being added
        ends = {topic: {each: end for each, end in own.items() if each < read} for topic, own in self.ends().items()}
        if any(found.get(topic, {}).get(each, 0) < end for topic, own in ends.items() for each, end in own.items()):
            sent = Markers(self.kafka).send(self.topics, read)
            self.wait(Marked(self.now(), sent.offsets), positions, reader, timeout)
        else:
            self._refuse_beyond(found, reader)

    def _refuse_beyond(self, positions: Offsets, reader: str) -> None:
        """Offsets of recreated topics start at 0 again, so old positions are beyond every marker."""
        for topic, ends in self.ends().items():
            for partition, end in ends.items():
                at = positions.get(topic, {}).get(partition, 0)
                if at > end:
                    message = (
                        f"{reader} has read `{topic}/{partition}` to {at}, but it ends at {end}: it is a different log"
                    )
                    raise OperatorError(message, do="restore the broker's log, or see docs/how-to/disaster-recovery.md")

    def ends(self) -> Offsets:
        """The current end offsets of the topics."""
        admin = Topics(self.kafka)
        return {topic: admin.end_offsets(topic) for topic in self.topics}


def _behind(marked: Marked, positions: Offsets, reader: str) -> str:
    for topic, own in marked.offsets.items():
        for partition, offset in own.items():
            at = positions.get(topic, {}).get(partition, 0)
            if at <= offset:
                read = f"`{topic}/{partition}` to {at} and the marker of {marked.cut} is at {offset}"
                return f"{reader} has read {read}. Nothing was changed"
    return f"{reader} is behind the markers of {marked.cut}. Nothing was changed"


class Markers:
    """Sends one marker to every partition. `offsets`: topic to partition to offset; `stamps`: when it was received."""

    def __init__(self, kafka: KafkaConnection) -> None:
        """`kafka`: the cluster."""
        self._kafka = kafka
        self.offsets: dict[str, dict[int, int]] = {}
        self.stamps: dict[tuple[str, int], datetime] = {}
        self._failed: list[KafkaError] = []

    def send(self, topics: Iterable[str], partitions: int) -> "Markers":
        """Send them. `partitions`: how many of each topic, the first ones. BrokerUnavailableError."""
        quiet = {"log_level": 2}  # no log lines about lost brokers
        producer = Producer({**self._kafka.client(), "enable.idempotence": True, "acks": "all", **quiet})
        try:
            for topic in topics:
                for partition in range(partitions):
                    producer.produce(
                        topic,
                        value=b"",
                        partition=partition,
                        headers={MARKER_HEADER: b"1"},
                        on_delivery=self._delivered,
                    )
            left = producer.flush(30)
        except KafkaException as error:
            raise explained(error.args[0], self._kafka, "write a marker") from error
        if left or self._failed:
            raise BrokerUnavailableError(
                f"{left or len(self._failed)} markers were not acknowledged", do="galatea status"
            )
        return self

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)
            return
        topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
        self.offsets.setdefault(topic, {})[partition] = offset
        stamp = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
        self.stamps[topic, partition] = stamp
