"""Relays with one thing wrong each, as somebody might write it. Every one has to be found out."""

from collections.abc import Mapping, Sequence

from confluent_kafka import TopicPartition

from speed_layer.alerts.processor import Known, Relay
from speed_layer.alerts.sender import CALL_SECONDS, Sender
from speed_layer.alerts.source import Inlet, Read
from views.alerts.alert import TOPIC, Alert


class _WithSender(Relay):
    sender: type[Sender]

    def _sender(self) -> Sender:
        return self.sender(self._work.bootstrap, self._partition)


class CommitBeforeWrite(_WithSender):
    """Positions are committed, then alerts are written."""

    class sender(Sender):  # noqa: N801 - the attribute
        def send(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
            super().send([], positions, group)
            super().send(alerts, {}, group)


class FlushAfterOffsets(_WithSender):
    """Positions are sent while alerts still wait in the client."""

    class sender(Sender):  # noqa: N801 - the attribute
        def _transact(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
            producer = self._producer
            producer.begin_transaction()
            for alert in alerts:
                producer.produce(TOPIC, value=alert.to_json(), key=alert.store, partition=self._partition)
            places = [TopicPartition(topic, self._partition, at) for topic, at in positions.items()]
            producer.send_offsets_to_transaction(places, group, CALL_SECONDS)
            producer.flush(CALL_SECONDS)
            producer.commit_transaction(CALL_SECONDS)


class PositionsBeforeSettling(_WithSender):
    """What is committed is asked for before `init_transactions` keeps the owner before out."""

    class sender(Sender):  # noqa: N801 - the attribute
        def settle(self) -> None:
            """Too early for this one."""

    def _begin(self, sender: Sender, inlet: Inlet) -> None:
        super()._begin(sender, inlet)
        Sender.settle(sender)


class OffsetWithoutOne(Relay):
    """The offset of the last record is committed, not where to go on."""

    class inlet(Inlet):  # noqa: N801 - the attribute
        def take(self) -> list[Read]:
            return [
                each if each.entry is None else each._replace(next_offset=each.entry.offset) for each in super().take()
            ]

    def _inlet(self) -> Inlet:
        return self.inlet(self._work.bootstrap, self._topics, self._partition)


class ForgetsWhatIsTold(Relay):
    """Positions are taken for all there is to know: what stands in `alerts` already is not asked for."""

    def _told_by(self, read: Read) -> Sequence[Alert]:
        self._known = Known(self._work.known_for)
        return super()._told_by(read)
