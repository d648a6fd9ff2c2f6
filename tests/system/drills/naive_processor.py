"""Alert processors as they are often written, without what makes them exactly once. Drills have to detect them."""

from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition

from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from speed_layer.alerts.processor import AlertProcessor, KnownAlerts, ProcessorConfig
from speed_layer.alerts.sender import CALL_SECONDS, TransactionalSender
from speed_layer.alerts.source import PartitionReader, SourceRecord
from views.alerts.alert import ALERTS_TOPIC, Alert
from views.alerts.signatures import AlertSignatures

GROUP = "galatea.alerts"
KEPT, PLAIN = "kept", "plain"
NAIVE = (KEPT, PLAIN)


class KeptSender(TransactionalSender):
    """Transactions by the book: a successful commit is trusted, whatever happened to the connection."""

    def _verify_statistics(self) -> None:
        self._faults = 0


class PlainSender(TransactionalSender):
    """No transactions: alerts are acknowledged, then positions are committed."""

    def __init__(self, kafka: KafkaConnection, partition: int, signatures: AlertSignatures) -> None:
        self._partition, self._signatures = partition, signatures
        self._plain = Producer(producer_settings(kafka, "naive", CALL_SECONDS))
        self._committer = Consumer({**kafka.client(), "group.id": GROUP, "enable.auto.commit": False})

    def start(self) -> None:
        """There is nothing that another could have left open."""

    def send(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
        del group
        failpoint(Failpoint.ALERTS_BEGUN)
        for alert in alerts:
            value = alert.to_json()
            headers = self._signatures.headers(ALERTS_TOPIC, value)
            self._plain.produce(ALERTS_TOPIC, value, alert.store, self._partition, headers=headers)
        failpoint(Failpoint.ALERTS_PRODUCED)
        self._plain.flush(CALL_SECONDS)
        failpoint(Failpoint.ALERTS_FLUSHED)
        places = [TopicPartition(topic, self._partition, at) for topic, at in positions.items()]
        self._committer.commit(offsets=places, asynchronous=False)
        failpoint(Failpoint.ALERTS_OFFSETS)
        failpoint(Failpoint.ALERTS_COMMITTED)

    def poll(self) -> None:
        self._plain.poll(0)

    def discard(self) -> None:
        self._plain.purge()
        self._committer.close()


class NaiveProcessor(AlertProcessor):
    """Trusts its positions alone: does not check which alerts were already emitted."""

    def __init__(self, work: ProcessorConfig, partition: int, kind: str) -> None:
        """`kind`: of NAIVE."""
        super().__init__(work, partition)
        self._kind = kind

    def _sender(self) -> TransactionalSender:
        kind = KeptSender if self._kind == KEPT else PlainSender
        return kind(self._config.kafka, self._partition, self._config.signatures)

    def _start(self, sender: TransactionalSender, inlet: PartitionReader) -> None:
        super()._start(sender, inlet)
        self._known = KnownAlerts(self._config.known_alerts_retention)

    def _alerts_for(self, read: SourceRecord) -> Sequence[Alert]:
        self._known = KnownAlerts(self._config.known_alerts_retention)
        return super()._alerts_for(read)
