"""Send records to Kafka from an event loop: a future for each call, and a thread that polls the driver.

The number and size of records in flight are bounded. Either all records of a call are accepted or none, and records
with equal keys keep their order.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import structlog
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Producer

from master_dataset.kafka.client_errors import NO_RIGHT, says_why
from master_dataset.kafka.client_settings import BufferLimits, producer_settings
from master_dataset.kafka.connection import KafkaConnection

GIVE_UP_SECONDS = 5.0
POLL_SECONDS = 0.2
LEAVE_SECONDS = 1.0
LOG_SECONDS = 60.0
"""How often it is logged that Kafka rejects this client, which tries again all the time."""

log = structlog.get_logger()


class DeliveryStatus(StrEnum):
    """The outcome of sending a record. UNCONFIRMED: it may or may not be in the topic; sending it again is safe."""

    ACKNOWLEDGED = "acknowledged"
    UNCONFIRMED = "unconfirmed"
    TOO_LARGE = "too_large"


class ProducerRecord(NamedTuple):
    """A record to send."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name) + len(value) for name, value in self.headers) if self.headers else 0
        return len(self.key) + len(self.value) + headers


class Delivery(NamedTuple):
    """The outcome of sending a record and, if it was acknowledged, its place.

    Attributes:
        status: See the class.
        partition: Of the topic.
        offset: In the partition.
        received_ms: The broker's timestamp, milliseconds since 1970; None if the topic keeps the sender's.
    """

    status: DeliveryStatus
    partition: int = -1
    offset: int = -1
    received_ms: int | None = None


class SentRecords:
    """Records that were sent by one call, and what is known of each. A future for each record would cost more."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        """`number` of records, at least one; `loop`: of the caller."""
        self._deliveries = [Delivery(DeliveryStatus.UNCONFIRMED)] * number
        self._unreported, self._lock = number, threading.Lock()
        self._done: asyncio.Future[None] = loop.create_future()

    async def deliveries(self, seconds: float) -> Sequence[Delivery]:
        """Return all deliveries, in order, once they are known. After `seconds`, those left are unconfirmed."""
        await asyncio.wait([self._done], timeout=seconds)
        return list(self._deliveries)

    def report(self, place: int, delivery: Delivery) -> bool:
        """Note the delivery of the record at `place`, from any thread. Return whether it was the last one."""
        with self._lock:
            self._deliveries[place] = delivery
            self._unreported -= 1
            return self._unreported == 0

    def settle(self) -> None:
        """Wake the caller, from its event loop."""
        if not self._done.done():  # the caller may have been cancelled
            self._done.set_result(None)


class AsyncProducer:
    """The producer of a process, used from one event loop. It can be created while no broker is running."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        connect: Callable[[dict[str, Any]], Any] = Producer,
        limits: BufferLimits = BufferLimits(),  # noqa: B008 - a tuple
    ) -> None:
        """Start the producer and the thread that polls it.

        Args:
            settings: Settings of librdkafka, such as `async_producer_settings`.
            connect: Creates the driver's producer from the settings.
            limits: How much may be in flight at once.
        """
        self._connect = partial(connect, {**settings, "error_cb": self._on_error})
        self._producer = self._connect()
        self._limits = limits
        self.in_flight = BufferLimits(0, 0)  # belongs to the event loop
        # These belong to the thread, and to `close` once the thread has ended.
        self._reported = BufferLimits(0, 0)
        self._complete: list[SentRecords] = []
        self._is_broken = False
        self._log_again_at = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="producer", daemon=True)
        self._poller.start()

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> SentRecords:
        """Send records to one topic, in order: all of them or none.

        Args:
            topic: The topic.
            records: The records, at least one; those with equal keys are appended in this order.

        Returns:
            The records as sent. All deliveries are known about GIVE_UP_SECONDS from now at the latest.

        Raises:
            BufferError: Too much is in flight; none was sent.
        """
        size = sum([record.size for record in records])
        total = BufferLimits(self.in_flight.records + len(records), self.in_flight.size + size)
        if total.records > self._limits.records or total.size > self._limits.size:
            raise BufferError("too much is in flight")
        self._loop = asyncio.get_running_loop()
        self.in_flight = total
        sent = SentRecords(len(records), self._loop)
        for place, record in enumerate(records):
            self._produce(topic, record, sent, place)
        return sent

    def close(self) -> None:
        """Wait until everything in flight is delivered or given up, and stop. Nothing may be sent afterwards."""
        self._closing.set()
        self._poller.join()
        self._producer.flush(GIVE_UP_SECONDS + LEAVE_SECONDS)
        self._pass_reports()

    def _produce(self, topic: str, record: ProducerRecord, sent: SentRecords, place: int) -> None:
        on_delivery = partial(self._on_delivery, sent, place, record.size)
        headers = {"headers": list(record.headers)} if record.headers else {}
        try:
            self._producer.produce(topic, record.value, record.key, on_delivery=on_delivery, **headers)
        except KafkaException as error:
            self._refuse(sent, place, record.size, delivery_status(error.args[0]))
        except BufferError:
            self._refuse(sent, place, record.size, DeliveryStatus.UNCONFIRMED)

    def _refuse(self, sent: SentRecords, place: int, size: int, status: DeliveryStatus) -> None:
        is_last = sent.report(place, Delivery(status))
        self._settle(BufferLimits(1, size), [sent] if is_last else [])

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_SECONDS)
            if self._is_broken:
                self._replace_producer()
            self._pass_reports()

    def _replace_producer(self) -> None:
        """After a fatal error, a producer accepts nothing more. The records still in flight become unconfirmed."""
        broken, self._producer = self._producer, self._connect()
        broken.purge()
        broken.flush(LEAVE_SECONDS)
        self._is_broken = False  # last, because the remaining records may report the same error

    def _on_error(self, error: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
        self._is_broken = self._is_broken or error.fatal()
        if (says_why(error) or error.code() in NO_RIGHT) and time.monotonic() >= self._log_again_at:
            self._log_again_at = time.monotonic() + LOG_SECONDS
            log.warning("producer.rejected", error=error.str(), do="galatea doctor")

    def _on_delivery(self, sent: SentRecords, place: int, size: int, error: Any, message: Any) -> None:  # noqa: ANN401
        if error is not None:
            self._on_error(error)
        records, total = self._reported
        self._reported = BufferLimits(records + 1, total + size)
        if sent.report(place, delivery_of(error, message)):
            self._complete.append(sent)

    def _pass_reports(self) -> None:
        """Pass many reports at once, because waking the event loop for each one would dominate the cost."""
        reported, complete = self._reported, self._complete
        self._reported, self._complete = BufferLimits(0, 0), []
        if reported.records and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, so nobody waits
                self._loop.call_soon_threadsafe(self._settle, reported, complete)

    def _settle(self, reported: BufferLimits, complete: Sequence[SentRecords]) -> None:
        """Free the room of what was `reported`, and wake the callers whose records are `complete`."""
        records, size = self.in_flight
        self.in_flight = BufferLimits(records - reported.records, size - reported.size)
        for sent in complete:
            sent.settle()


def async_producer_settings(kafka: KafkaConnection) -> dict[str, Any]:
    """Return settings of a producer that gives up after GIVE_UP_SECONDS and barely waits to fill a batch."""
    return {**producer_settings(kafka, "galatea-api", GIVE_UP_SECONDS), "linger.ms": 2}


def delivery_status(error: Any) -> DeliveryStatus:  # noqa: ANN401
    """Translate the driver's error into a delivery status; None means that the record was acknowledged."""
    if error is None:
        return DeliveryStatus.ACKNOWLEDGED
    return DeliveryStatus.TOO_LARGE if error.code() == KafkaError.MSG_SIZE_TOO_LARGE else DeliveryStatus.UNCONFIRMED


def delivery_of(error: Any, message: Any) -> Delivery:  # noqa: ANN401
    """Translate the driver's report of a record.

    A broker that has acknowledged a record before, and no longer knows where it put it, confirms it without its offset.
    Such a record counts as unconfirmed: if it is sent again, it gets a place, and it counts once.
    """
    status = delivery_status(error)
    if status is not DeliveryStatus.ACKNOWLEDGED:
        return Delivery(status)
    if message.offset() is None or message.offset() < 0:
        return Delivery(DeliveryStatus.UNCONFIRMED)
    kind, stamp = message.timestamp()
    return Delivery(status, message.partition(), message.offset(), stamp if kind == TIMESTAMP_LOG_APPEND_TIME else None)
