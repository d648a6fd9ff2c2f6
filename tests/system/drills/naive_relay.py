"""Relays as many write them: the same loop, without what makes it exactly once. Drills have to find them out."""

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from master_dataset.failpoints import CrashPoint, passing
from master_dataset.kafka.client_settings import producer_settings
from speed_layer.alerts.processor import Known, Relay, Work
from speed_layer.alerts.sender import CALL_SECONDS, Sender
from speed_layer.alerts.source import Inlet, Read
from views.alerts.alert import TOPIC, Alert

GROUP = "galatea.alerts"
KEPT, PLAIN = "kept", "plain"
NAIVE = (KEPT, PLAIN)


class KeptSender(Sender):
    """Transactions by the book: a commit that went well is done, whatever the connection went through."""

    def _look_again(self) -> None:
        self._faults = 0


class PlainSender(Sender):
    """No transactions: alerts are acknowledged, then positions are committed."""

    def __init__(self, bootstrap: str, partition: int) -> None:
        self._partition = partition
        self._plain = Producer(producer_settings(bootstrap, "naive", CALL_SECONDS))
        self._committer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False})

    def settle(self) -> None:
        """There is nothing that another could have left open."""

    def send(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
        del group
        passing(CrashPoint.ALERTS_BEGUN)
        for alert in alerts:
            self._plain.produce(TOPIC, value=alert.to_json(), key=alert.store, partition=self._partition)
        passing(CrashPoint.ALERTS_PRODUCED)
        self._plain.flush(CALL_SECONDS)
        passing(CrashPoint.ALERTS_FLUSHED)
        places = [TopicPartition(topic, self._partition, at) for topic, at in positions.items()]
        self._committer.commit(offsets=places, asynchronous=False)
        passing(CrashPoint.ALERTS_OFFSETS)
        passing(CrashPoint.ALERTS_COMMITTED)

    def rest(self) -> None:
        self._plain.poll(0)

    def discard(self) -> None:
        self._plain.purge()
        self._committer.close()


class NaiveRelay(Relay):
    """Takes its positions for all there is to know: does not ask what is told already."""

    def __init__(self, work: Work, partition: int, kind: str) -> None:
        """`kind`: of NAIVE."""
        super().__init__(work, partition)
        self._kind = kind

    def _sender(self) -> Sender:
        kind = KeptSender if self._kind == KEPT else PlainSender
        return kind(self._work.bootstrap, self._partition)

    def _begin(self, sender: Sender, inlet: Inlet) -> None:
        super()._begin(sender, inlet)
        self._known = Known(self._work.known_for)

    def _told_by(self, read: Read) -> Sequence[Alert]:
        self._known = Known(self._work.known_for)
        return super()._told_by(read)
