"""A transactional producer of the broker in memory, whose commits may be sent twice behind its owner's back."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from tests.fast.laws.delivery.broker import Broker, Late, refused


class Producer:
    """`hidden`: how likely a commit is sent again and the first of both arrives late; `is_told`: statistics say so."""

    def __init__(self, broker: Broker, settings: dict[str, Any], hidden: float, *, reports_faults: bool) -> None:
        self._broker, self._settings, self._hidden, self._reports_faults = broker, settings, hidden, reports_faults
        self._id = str(settings["transactional.id"])
        self._epoch = -1
        self._faults = 0
        self._waiting: list[tuple[str, int, bytes, Any, Callable[..., None]]] = []

    def poll(self, _: float) -> None:
        said = {"txretries": self._faults if self._reports_faults else 0, "disconnects": 0, "req_timeouts": 0}
        self._settings["stats_cb"](json.dumps({"brokers": {"1": said}}))

    def init_transactions(self, _: float) -> None:
        self._broker.called()
        self._epoch = self._broker.begin_epoch(self._id)

    def begin_transaction(self) -> None:
        if self._epoch < 0:
            raise refused(KafkaError._STATE)  # noqa: SLF001 - its name

    def produce(self, topic: str, *, value: bytes, partition: int, on_delivery: Any, **more: Any) -> None:
        self._waiting.append((topic, partition, value, more.get("headers"), on_delivery))

    def flush(self, _: float = 0) -> int:
        while self._waiting:
            self._broker.called()
            topic, partition, value, headers, delivered = self._waiting.pop(0)
            transaction = self._broker.transaction(self._id, self._epoch)
            transaction.places.add((topic, partition))
            self._broker.append((topic, partition), value, headers, transaction)
            delivered(None, None)
        return 0

    def send_offsets_to_transaction(self, offsets: Sequence[TopicPartition], _: object, __: float) -> None:
        self._broker.called()
        transaction = self._broker.transaction(self._id, self._epoch)
        transaction.offsets |= {(each.topic, each.partition): each.offset for each in offsets}

    def commit_transaction(self, _: float) -> None:
        self.flush()
        transaction = self._broker.transaction(self._id, self._epoch)
        transaction.is_requested = True
        self._broker.late.append(Late(self._id, self._epoch))
        self._broker.before_answer()  # a process that ends here does not know whether it arrives
        self._broker.called()
        if self._broker.chance.random() < self._hidden:
            self._faults += 1
        elif Late(self._id, self._epoch) in self._broker.late:
            self._broker.late.remove(Late(self._id, self._epoch))
        self._broker.finish(self._id, "committed")

    def purge(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        """Nothing: what is open stays open."""
