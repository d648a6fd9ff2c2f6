"""Sends alerts and positions in one transaction, and discards the producer as soon as an outcome is uncertain.

A commit that librdkafka resends on its own may arrive late and end the next transaction of the same producer half-way.
So the statistics are checked after each commit; if anything was resent, timed out or lost its connection, the producer
is discarded. A new one ends what was open, and the late commit is rejected.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from master_dataset.errors import GalateaError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from views.alerts.alert import ALERTS_TOPIC, Alert
from views.alerts.signatures import AlertSignatures

CALL_SECONDS = 20.0
TRANSACTION_MS = 30_000
_SAMPLE_MS = 50
_RETRY_SECONDS = 0.1
_SAMPLES = 2
"""The first statistics seen after a commit may be from before it."""
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)  # noqa: SLF001 - its name
_FAULTS = ("txretries", "disconnects", "req_timeouts")


class ProducerDiscardedError(Exception):
    """The outcome of a transaction is uncertain, or there was none: start again with a new producer."""


class FencedError(GalateaError):
    """Another alert processor has taken over this partition."""


def transactional_settings(kafka: KafkaConnection, transactional_id: str) -> dict[str, Any]:
    """Return settings of librdkafka for a producer whose transactions are small and sent at once."""
    return {
        **producer_settings(kafka, "galatea-alerts", CALL_SECONDS),
        "transactional.id": transactional_id,
        "transaction.timeout.ms": TRANSACTION_MS,
        "linger.ms": 0,
    }


class TransactionalSender:
    """The transactional producer of one partition. `metadata` is committed with each position."""

    metadata = ""

    def __init__(self, kafka: KafkaConnection, partition: int, signatures: AlertSignatures) -> None:
        """Nothing is sent before `start`. `signatures`: sign what is sent."""
        self._partition, self._signatures = partition, signatures
        self._samples = self._faults = 0
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            {
                **transactional_settings(kafka, f"galatea.alerts.{partition}"),
                "statistics.interval.ms": _SAMPLE_MS,
                "stats_cb": self._sampled,
                "error_cb": lambda _: None,
            }
        )

    def start(self) -> None:
        """End what a predecessor left open, and fence it. ProducerDiscardedError, FencedError."""
        try:
            self._producer.init_transactions(CALL_SECONDS)
        except KafkaException as error:
            raise self._as_our_error(error) from error

    def send(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
        """Send everything or nothing.

        ProducerDiscardedError if the outcome is uncertain: then read what is committed.
        """
        self._producer.poll(0)
        before = self._faults
        self._failed = []
        try:
            self._transact(alerts, positions, group)
        except (KafkaException, BufferError, SystemError) as error:  # SystemError: a fatal error within a callback
            raise self._as_our_error(error) from error
        failpoint(Failpoint.ALERTS_COMMITTED)
        self._verify_statistics()
        if self._faults > before:
            raise ProducerDiscardedError("something was sent again, or a connection was lost")

    def poll(self) -> None:
        """Call it while nothing is sent, because statistics arrive all the time."""
        self._producer.poll(0)

    def discard(self) -> None:
        """Send nothing more. Errors of a broken or fenced client are ignored."""
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.close()

    def _transact(self, alerts: Sequence[Alert], positions: Mapping[str, int], group: object) -> None:
        producer = self._producer
        producer.begin_transaction()
        failpoint(Failpoint.ALERTS_BEGUN)
        until = time.monotonic() + TRANSACTION_MS / 1000
        for alert in alerts:
            while not self._try_produce(alert):
                if time.monotonic() >= until:
                    raise ProducerDiscardedError("the client's buffer did not become free in time")
            producer.poll(0)
        failpoint(Failpoint.ALERTS_PRODUCED)
        # Before the positions: a transaction that ends half-way can repeat a known alert, but not lose one.
        if producer.flush(CALL_SECONDS) or self._failed:
            raise ProducerDiscardedError("alerts were not acknowledged")
        failpoint(Failpoint.ALERTS_FLUSHED)
        partitions = [TopicPartition(topic, self._partition, at, self.metadata) for topic, at in positions.items()]
        producer.send_offsets_to_transaction(partitions, group, CALL_SECONDS)
        failpoint(Failpoint.ALERTS_OFFSETS)
        producer.commit_transaction(CALL_SECONDS)

    def _try_produce(self, alert: Alert) -> bool:
        """False if the client's buffer is full; some records may already have been sent."""
        value = alert.to_json()
        try:
            self._producer.produce(
                ALERTS_TOPIC,
                value=value,
                headers=self._signatures.headers(ALERTS_TOPIC, value),
                key=alert.store,
                partition=self._partition,
                on_delivery=self._delivered,
            )
        except BufferError:
            self._producer.poll(_RETRY_SECONDS)
            return False
        return True

    def _verify_statistics(self) -> None:
        self._producer.poll(0)
        needed, deadline = self._samples + _SAMPLES, time.monotonic() + CALL_SECONDS
        while self._samples < needed:
            if time.monotonic() > deadline:
                raise ProducerDiscardedError("there are no statistics")
            self._producer.poll(_SAMPLE_MS / 1000)

    def _sampled(self, text: str) -> None:
        brokers: Mapping[str, Mapping[str, Any]] = msgspec.json.decode(text)["brokers"]
        self._faults = sum(int(broker.get(name, 0)) for broker in brokers.values() for name in _FAULTS)
        self._samples += 1

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _as_our_error(self, error: Exception) -> Exception:
        cause = error.__cause__ if isinstance(error, SystemError) and error.__cause__ else error
        kind = cause.args[0] if cause.args else None
        if isinstance(kind, KafkaError) and kind.code() in _FENCED:
            return FencedError(
                "another processor has taken over", do="no action needed: this one restarts and stands by"
            )
        return ProducerDiscardedError(str(error))
