"""What `galatea doctor --deployment` reads of a Kafka cluster. Nothing is written to a topic."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, ConfigResource, OffsetSpec, ResourceType

from master_dataset.kafka.client_errors import NO_RIGHT, ClientErrors
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.topics import Topics

if TYPE_CHECKING:
    from concurrent.futures import Future

WATCH_SECONDS = 3.0
"""How long to wait for a record whose timestamp shows the clock of a broker."""
_SECONDS, _PAUSE_SECONDS = 10, 0.2
_UNSEEN = NO_RIGHT | {KafkaError.UNKNOWN_TOPIC_OR_PART}
"""Kafka hides what a user may not describe."""


class Broker(NamedTuple):
    """One broker, and the address that it announces to clients."""

    number: int
    host: str
    port: int


@dataclass(frozen=True)
class TopicFacts:
    """One topic as it is.

    Attributes:
        partitions: Number of partitions.
        replication: Copies of each record; of the partition that has the fewest.
        leaderless: Partitions without a leader.
        behind: Partitions with a copy that is not in sync.
        options: Its configuration, defaults of the broker included; None if the user may not read it.
    """

    partitions: int
    replication: int
    leaderless: int
    behind: int
    options: Mapping[str, str | None] | None


class Stamp(NamedTuple):
    """The newest timestamp of a partition, in ms of its leader's clock. `offset`: of its record; -1 without one."""

    leader: int
    offset: int
    stamp_ms: int


@dataclass(frozen=True)
class ClockOffset:
    """How far the clock of a broker is ahead of this machine's; negative: behind. In seconds.

    A record that arrives while this machine is looking arrived between two looks, and its timestamp says when by the
    clock of the broker. Without one, the newest timestamp shows only that the clock is not further behind.

    Attributes:
        least: It is at least this.
        most: It is at most this; None if that is not known.
    """

    least: float
    most: float | None = None

    def is_within(self, skew: timedelta) -> bool | None:
        """Whether it is within the skew; None if not enough is known. A broker may be ahead or behind by the skew."""
        allowed = skew.total_seconds()
        if self.least > allowed or (self.most is not None and self.most < -allowed):
            return False
        return True if self.most is not None else None


class Inspection(Topics):
    """One cluster, as one user sees it. Every method raises BrokerUnavailableError."""

    def __init__(self, kafka: KafkaConnection) -> None:
        """`kafka`: the cluster, with the login of that user."""
        super().__init__(kafka)
        self._kafka = kafka

    def nodes(self) -> Sequence[Broker]:
        """Return the brokers that are alive."""
        with self._translated("list the brokers"):
            found = self._admin.list_topics(timeout=_SECONDS).brokers.values()
        return sorted(Broker(each.id, each.host or "", each.port or 0) for each in found)

    def topic(self, name: str) -> TopicFacts:
        """Return one topic as it is."""
        what = f"read the topic `{name}`"
        with self._translated(what):
            found = self._admin.list_topics(name, timeout=_SECONDS).topics[name]
            if found.error is not None:
                raise KafkaException(found.error)
        own = list(found.partitions.values())
        return TopicFacts(
            partitions=len(own),
            replication=min((len(each.replicas) for each in own), default=0),
            leaderless=sum(each.leader < 0 for each in own),
            behind=sum(len(each.isrs) < len(each.replicas) for each in own),
            options=self._readable(ConfigResource(ResourceType.TOPIC, name), what),
        )

    def broker_options(self, broker: int) -> Mapping[str, str | None] | None:
        """Return the configuration of a broker; None if the user may not read it."""
        return self._readable(ConfigResource(ResourceType.BROKER, str(broker)), f"read the options of broker {broker}")

    def _readable(self, resource: ConfigResource, what: str) -> Mapping[str, str | None] | None:
        with self._translated(what):
            try:
                described = self._admin.describe_configs([resource], request_timeout=_SECONDS)[resource].result()
            except KafkaException as error:
                if error.args[0].code() in NO_RIGHT:
                    return None
                raise
            return {name: entry.value for name, entry in described.items()}

    def operations(self, topics: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Return what the user may do with each topic, in Kafka's words; nothing with one that it cannot see."""
        with self._translated("read the rights to the topics"):
            described = self._admin.describe_topics(
                TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=_SECONDS
            )
            return {name: _operations(future) for name, future in described.items()}

    def group_operations(self, groups: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Return what the user may do with each consumer group, which need not exist."""
        with self._translated("read the rights to consumer groups"):
            described = self._admin.describe_consumer_groups(
                list(groups), include_authorized_operations=True, request_timeout=_SECONDS
            )
            return {name: _operations(future) for name, future in described.items()}

    def may_use_transactions(self, transactional_id: str) -> bool:
        """Return whether the user may use a transactional id. It must be one that no producer uses.

        The coordinator remembers it for a while. No transaction is begun.
        """
        errors = ClientErrors(self._kafka)
        options = {"transactional.id": transactional_id, "log_level": 0}
        producer: Producer = errors.connect(Producer, options)
        try:
            producer.init_transactions(2 * _SECONDS)
        except KafkaException as error:
            if error.args[0].code() in NO_RIGHT:
                return False
            producer.poll(0)
            raise errors.translated(error, f"use the transactional id `{transactional_id}`") from error
        return True

    def clock_offsets(self, topics: Iterable[str], watch_seconds: float = WATCH_SECONDS) -> Mapping[int, ClockOffset]:
        """Compare the clocks of brokers with this machine's, by the timestamps that they give to records.

        Args:
            topics: Topics whose timestamps are those of the broker.
            watch_seconds: How long to wait for new records.

        Returns:
            Number of a broker to the offset of its clock. A broker that leads no partition with records is left out.
        """
        topics = list(topics)
        before_ms, before = _now_ms(), self._stamps(topics)
        newest: dict[int, int] = {}
        for stamp in before.values():
            if stamp.offset >= 0:
                newest[stamp.leader] = max(stamp.stamp_ms, newest.get(stamp.leader, 0))
        now_ms = _now_ms()
        found = {leader: ClockOffset((stamp_ms - now_ms) / 1000) for leader, stamp_ms in newest.items()}
        end = time.monotonic() + watch_seconds
        while time.monotonic() < end and any(offset.most is None for offset in found.values()):
            time.sleep(_PAUSE_SECONDS)
            started_ms, now = _now_ms(), self._stamps(topics)
            ended_ms = _now_ms()
            for place, stamp in now.items():
                last = before.get(place)
                if last is not None and stamp.leader == last.leader and stamp.offset > last.offset:
                    found[stamp.leader] = _between(stamp.stamp_ms, before_ms, ended_ms)
            before_ms, before = started_ms, now
        return found

    def _stamps(self, topics: Sequence[str]) -> Mapping[tuple[str, int], Stamp]:
        with self._translated("read the timestamps of records"):
            known = self._admin.list_topics(timeout=_SECONDS).topics
            leaders = {
                (name, number): each.leader
                for name in topics
                if name in known
                for number, each in known[name].partitions.items()
            }
            wanted = {TopicPartition(*place): OffsetSpec.max_timestamp() for place in leaders}  # type: ignore[no-untyped-call]
            if not wanted:
                return {}
            listed = self._admin.list_offsets(wanted, request_timeout=_SECONDS)
            results = {(each.topic, each.partition): future.result(2 * _SECONDS) for each, future in listed.items()}
        return {place: Stamp(leaders[place], each.offset, each.timestamp) for place, each in results.items()}


def _operations(future: "Future[Any]") -> frozenset[str]:
    """The operations of a description; none of what is hidden."""
    try:
        described = future.result(2 * _SECONDS)
    except KafkaException as error:
        if error.args[0].code() in _UNSEEN:
            return frozenset()
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:  # the user may describe it; more is not known
            return frozenset({"DESCRIBE", "READ"})
        raise
    return frozenset(AclOperation(each).name for each in described.authorized_operations or ())


def _now_ms() -> float:
    return time.time() * 1000


def _between(stamp_ms: int, earliest_ms: float, latest_ms: float) -> ClockOffset:
    """The offset by a record that arrived between these times of this machine."""
    return ClockOffset((stamp_ms - latest_ms) / 1000, (stamp_ms - earliest_ms) / 1000)
