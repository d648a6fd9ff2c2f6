"""Alert processors with one mistake each. Tests have to detect every one."""

from collections.abc import Mapping, Sequence

from confluent_kafka import TopicPartition

from speed_layer.alerts.processor import AlertProcessor, KnownAlerts
from speed_layer.alerts.sender import CALL_SECONDS, TransactionalSender
from speed_layer.alerts.source import PartitionReader, SourceRecord
from views.alerts.alert import ALERTS_TOPIC, Alert


class _WithSender(AlertProcessor):
    sender: type[TransactionalSender]

    def _sender(self) -> TransactionalSender:
        return self.sender(self._config.kafka, self._partition, self._config.signatures)


class CommitBeforeWrite(_WithSender):
    """Positions are committed, then alerts are written."""

    class sender(TransactionalSender):  # noqa: N801 - the attribute
        def send(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
            super().send([], positions, group)
            super().send(alerts, {}, group)


class FlushAfterOffsets(_WithSender):
    """Positions are sent while alerts still wait in the client."""

    class sender(TransactionalSender):  # noqa: N801 - the attribute
        def _transact(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
            producer = self._producer
            producer.begin_transaction()
            for alert in alerts:
                value = alert.to_json()
                headers = self._signatures.headers(ALERTS_TOPIC, value)
                producer.produce(ALERTS_TOPIC, value=value, partition=self._partition, headers=headers)
            places = [TopicPartition(topic, self._partition, at) for topic, at in positions.items()]
            producer.send_offsets_to_transaction(places, group, CALL_SECONDS)
            producer.flush(CALL_SECONDS)
            producer.commit_transaction(CALL_SECONDS)


class PositionsBeforeSettling(_WithSender):
    """What is committed is asked for before `init_transactions` keeps the owner before out."""

    class sender(TransactionalSender):  # noqa: N801 - the attribute
        def start(self) -> None:
            """Too early for this one."""

    def _start(self, sender: TransactionalSender, inlet: PartitionReader) -> None:
        super()._start(sender, inlet)
        TransactionalSender.start(sender)


class OffsetWithoutOne(AlertProcessor):
    """The offset of the last record is committed, not where to go on."""

    class inlet(PartitionReader):  # noqa: N801 - the attribute
        def poll(self) -> list[SourceRecord]:
            return [
                each if each.entry is None else each._replace(next_offset=each.entry.offset) for each in super().poll()
            ]

    def _reader(self) -> PartitionReader:
        return self.inlet(self._config.kafka, self._topics, self._partition)


class ForgetsWhatIsEmitted(AlertProcessor):
    """Positions are taken for all there is to know: what stands in `alerts` already is not asked for."""

    def _alerts_for(self, read: SourceRecord) -> Sequence[Alert]:
        self._known = KnownAlerts(self._config.known_alerts_retention)
        return super()._alerts_for(read)
