"""Carries records to their topics for callers that must not wait: a future for each, one thread that hears the broker.

What is under way is bounded, and a caller's records are taken all or none. One caller's records of a key are appended
in their order.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from master_dataset.kafka.client_settings import BufferLimits, producer_settings

GIVE_UP_SECONDS = 5.0
LISTEN_SECONDS = 0.2
LEAVE_SECONDS = 1.0


class DeliveryStatus(StrEnum):
    """What became of a record. UNCONFIRMED: it may be in the topic or not; whoever sends it again is safe."""

    ACKNOWLEDGED = "acknowledged"
    UNCONFIRMED = "unconfirmed"
    TOO_LARGE = "too_large"


class ProducerRecord(NamedTuple):
    """A record for a topic."""

    key: bytes
    value: bytes

    @property
    def size(self) -> int:
        """Bytes that it takes while it is under way."""
        return len(self.key) + len(self.value)


class _Report(NamedTuple):
    waiting: asyncio.Future[DeliveryStatus]
    size: int
    fate: DeliveryStatus


class AsyncProducer:
    """One producer of a process, used from one event loop. It can be made while no broker is there."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        connect: Callable[[dict[str, Any]], Any] = Producer,
        room: BufferLimits = BufferLimits(),  # noqa: B008 - a tuple
    ) -> None:
        """`settings`: of librdkafka, such as `courier_settings`. `connect` makes the producer from them."""
        self._connect = partial(connect, {**settings, "error_cb": self._hear_trouble})
        self._producer = self._connect()
        self._room = room
        self.under_way = BufferLimits(0, 0)  # belongs to the event loop
        self._reports: list[_Report] = []  # belongs to the thread, and to `close` when that has ended
        self._is_broken = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = threading.Event()
        self._listener = threading.Thread(target=self._listen, name="courier", daemon=True)
        self._listener.start()

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> list[asyncio.Future[DeliveryStatus]]:
        """Take all of them, in their order; a future of its fate for each, some GIVE_UP_SECONDS from now at the latest.

        Raises BufferError, and none is taken, if too much is under way already.
        """
        size = sum(record.size for record in records)
        wanted = BufferLimits(self.under_way.records + len(records), self.under_way.size + size)
        if wanted.records > self._room.records or wanted.size > self._room.size:
            raise BufferError("too much is under way")
        self._loop = asyncio.get_running_loop()
        self.under_way = wanted
        return [self._produce(topic, record, self._loop.create_future()) for record in records]

    def close(self) -> None:
        """Wait for what is under way, as long as it may take, and end. Nothing may be sent any more."""
        self._closing.set()
        self._listener.join()
        self._producer.flush(GIVE_UP_SECONDS + LEAVE_SECONDS)
        self._hand_over()

    def _produce(
        self, topic: str, record: ProducerRecord, waiting: asyncio.Future[DeliveryStatus]
    ) -> asyncio.Future[DeliveryStatus]:
        report = partial(self._hear, waiting, record.size)
        try:
            self._producer.produce(topic, record.value, record.key, on_delivery=report)
        except KafkaException as error:
            self._settle([_Report(waiting, record.size, delivery_status(error.args[0]))])
        except BufferError:
            self._settle([_Report(waiting, record.size, DeliveryStatus.UNCONFIRMED)])
        return waiting

    def _listen(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(LISTEN_SECONDS)
            if self._is_broken:
                self._begin_anew()
            self._hand_over()

    def _begin_anew(self) -> None:
        """A producer that lost count of its sequence takes nothing more: what it still had becomes unconfirmed."""
        broken, self._producer = self._producer, self._connect()
        broken.purge()
        broken.flush(LEAVE_SECONDS)
        self._is_broken = False  # last, for what was left may have told of the same error

    def _hear_trouble(self, error: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
        self._is_broken = self._is_broken or error.fatal()

    def _hear(self, waiting: asyncio.Future[DeliveryStatus], size: int, error: Any, _: object) -> None:  # noqa: ANN401
        if error is not None:
            self._hear_trouble(error)
        self._reports.append(_Report(waiting, size, delivery_status(error)))

    def _hand_over(self) -> None:
        """Many reports at once: to wake the loop for each would cost more than the rest."""
        told, self._reports = self._reports, []
        if told and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                self._loop.call_soon_threadsafe(self._settle, told)

    def _settle(self, told: Sequence[_Report]) -> None:
        settled = sum(report.size for report in told)
        self.under_way = BufferLimits(self.under_way.records - len(told), self.under_way.size - settled)
        for report in told:
            if not report.waiting.done():  # whoever waited may have left
                report.waiting.set_result(report.fate)


def async_producer_settings(bootstrap: str) -> dict[str, Any]:
    """As every producer, but it gives up after GIVE_UP_SECONDS, and hardly waits for more records to send together."""
    return {**producer_settings(bootstrap, "galatea-api", GIVE_UP_SECONDS), "linger.ms": 2}


def delivery_status(error: Any) -> DeliveryStatus:  # noqa: ANN401
    """What an error of the driver says of its record; None: it was acknowledged."""
    if error is None:
        return DeliveryStatus.ACKNOWLEDGED
    return DeliveryStatus.TOO_LARGE if error.code() == KafkaError.MSG_SIZE_TOO_LARGE else DeliveryStatus.UNCONFIRMED
