"""What is sent during power cuts, and what the brokers have acknowledged: numbered records, and small transactions."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.ingest import IngestOptions
from master_dataset.kafka.producer import LEAVE_SECONDS, async_producer_settings
from speed_layer.alerts.sender import CALL_SECONDS, transactional_settings
from tests.system.drills.power_check import Acknowledged, Outcome, Place, Transaction
from views.alerts.alert import ALERTS_TOPIC

RECORDS_TOPIC, GROUP = "pos_transactions", "power"
PARTITIONS = 4
INGESTS = 3
PER_SECOND = 100
"""Records of each producer."""
IN_FLIGHT = 2000
FILLING = b"." * 100
LARGEST = 5
"""Records of a transaction."""
HANG_SECONDS = 10.0
"""Of a transaction: longer than any takes while the broker serves."""
END_SECONDS = 90.0
ABORTED_EVERY, ABANDONED_EVERY = 6, 25
"""So many transactions, one of them is aborted, or left open by a producer that ends."""


class Numbered:
    """A producer of numbered records, with settings of the product. One that breaks is replaced, as in the API.

    A record that it gives up, or confirms without its place, is sent again. `unknown`, `unplaced`: how often either
    happened; `broken`: producers that were replaced.
    `is_abandoned`: nobody is interested in what is not acknowledged yet.
    """

    def __init__(self, name: str, settings: Mapping[str, Any], seed: int) -> None:
        """It connects at once."""
        self.places: list[Place] = []
        self.again: set[bytes] = set()
        self.unknown = self.unplaced = self.broken = 0
        self.is_abandoned = False
        self._name, self._chance = name.encode(), Random(f"{seed} {name}")
        self._connect = partial(Producer, {**settings, "error_cb": self._on_error})
        self._producer = self._connect()
        self._number = 0
        self._is_broken = False
        self._given_up: list[tuple[int, bytes]] = []

    def run(self, stop: threading.Event) -> None:
        """A thread's work; it ends when every record is acknowledged."""
        while not stop.is_set():
            self._number += 1
            self._send(self._chance.randrange(PARTITIONS), b"%s %d %s" % (self._name, self._number, FILLING))
            self._poll(0)
            while len(self._producer) > IN_FLIGHT and not stop.is_set():
                self._poll(0.1)
            time.sleep(1 / PER_SECOND)
        while (len(self._producer) or self._given_up) and not self.is_abandoned:
            self._poll(0.1)

    def _poll(self, seconds: float) -> None:
        self._producer.poll(seconds)
        if self._is_broken:
            self.broken += 1
            broken, self._producer = self._producer, self._connect()
            broken.purge()
            broken.flush(LEAVE_SECONDS)
            self._is_broken = False
        given_up, self._given_up = self._given_up, []
        for partition, value in given_up:
            self.again.add(value)
            self._send(partition, value)

    def _send(self, partition: int, value: bytes) -> None:
        on_delivery = partial(self._on_delivery, partition, value)
        try:
            self._producer.produce(RECORDS_TOPIC, value, partition=partition, on_delivery=on_delivery)
        except KafkaException as error:
            self._on_delivery(partition, value, error.args[0], None)

    def _on_error(self, error: Any) -> None:
        self._is_broken = self._is_broken or error.fatal()

    def _on_delivery(self, partition: int, value: bytes, error: Any, message: Any) -> None:
        if error is not None:
            self._on_error(error)
            self.unknown += 1
            self._given_up.append((partition, value))
        elif message.offset() is None or message.offset() < 0:  # unconfirmed: see `delivery_of`
            self.unplaced += 1
            self._given_up.append((partition, value))
        else:
            self.places.append(Place(message.partition(), message.offset(), value))


class Transactions:
    """Small transactions with a position, as those of the alert processor, one after another; some are aborted.

    A producer with a transaction that has failed is replaced. So is one that hangs, because librdkafka may wait for the
    coordinator of a group without a limit: the alert processor has a watchdog for that. `known`: transactions by their
    number from 0. `hung`: how many producers have.
    """

    def __init__(self, kafka: KafkaConnection, seed: int) -> None:
        """Nothing is sent yet."""
        self.known: dict[int, Transaction] = {}
        self.hung = 0
        self._kafka, self._chance = kafka, Random(f"{seed} transactions")
        self._alive_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """A thread's work; when it ends, no transaction is open."""
        while not stop.is_set():
            self._alive_at = math.inf
            own_stop = threading.Event()
            life = threading.Thread(target=self._live, args=(own_stop,), daemon=True)
            life.start()
            while life.is_alive() and time.monotonic() - self._alive_at < HANG_SECONDS:
                if stop.is_set():
                    own_stop.set()
                life.join(0.1)
            own_stop.set()
            self.hung += life.is_alive()
        last = self._producer()
        last.init_transactions(END_SECONDS)  # ends what is open
        last.close()

    def _producer(self) -> Any:
        return Producer({**transactional_settings(self._kafka, "power"), "error_cb": lambda _: None})

    def _live(self, stop: threading.Event) -> None:
        """Transactions of one producer."""
        consumer = Consumer({**self._kafka.client(), "group.id": GROUP, "enable.auto.commit": False, "log_level": 0})
        group, producer = consumer.consumer_group_metadata(), self._producer()
        with suppress(KafkaException, BufferError, SystemError):  # SystemError: a fatal error within a callback
            producer.init_transactions(CALL_SECONDS)
            goes_on = True
            while goes_on and not stop.is_set():
                self._alive_at = time.monotonic()
                goes_on = self._transact(producer, group)
                time.sleep(1 / PER_SECOND)
        with suppress(KafkaException):
            producer.purge()
            producer.close()
        consumer.close()

    def _transact(self, producer: Any, group: Any) -> bool:
        """One transaction. False if the producer is to be replaced with the transaction open."""
        number, size = len(self.known), self._chance.randint(1, LARGEST)
        self.known[number] = Transaction(size, Outcome.ABORTED)
        failed: list[Any] = []
        producer.begin_transaction()
        for place in range(size):
            producer.produce(
                ALERTS_TOPIC,
                b"%d %d" % (number, place),
                partition=self._chance.randrange(PARTITIONS),
                on_delivery=lambda error, _: failed.append(error) if error is not None else None,
            )
        if producer.flush(CALL_SECONDS) or failed:
            return False
        producer.send_offsets_to_transaction([TopicPartition(RECORDS_TOPIC, 0, number)], group, CALL_SECONDS)
        if number % ABANDONED_EVERY == ABANDONED_EVERY - 1:
            return False
        if number % ABORTED_EVERY == ABORTED_EVERY - 1:
            producer.abort_transaction(CALL_SECONDS)
            return True
        self.known[number] = Transaction(size, Outcome.UNKNOWN)
        producer.commit_transaction(CALL_SECONDS)
        self.known[number] = Transaction(size, Outcome.COMMITTED)
        return True


class PowerLoad:
    """All producers, each in a thread of its own."""

    def __init__(self, kafka: KafkaConnection, seed: int) -> None:
        """Nothing is sent yet."""
        ingest = producer_settings(kafka, "galatea-ingest", IngestOptions().give_up_seconds)
        settings = {**{f"ingest-{number}": ingest for number in range(INGESTS)}, "api": async_producer_settings(kafka)}
        self.producers = [Numbered(name, own, seed) for name, own in settings.items()]
        self.transactions = Transactions(kafka, seed)
        self._stop = threading.Event()
        self._threads: list[Future[None]] = []

    def acknowledged(self) -> Acknowledged:
        """What is acknowledged by now."""
        producers = self.producers
        places = [place for each in producers for place in each.places[:]]
        return Acknowledged(places, {value for each in producers for value in set(each.again)})

    def count(self) -> int:
        """How many records are acknowledged by now. Raises what has ended a thread early."""
        self._check()
        return sum(len(each.places) for each in self.producers)

    def _check(self) -> None:
        for each in self._threads:
            if each.done():
                each.result()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send all the time. In the end everything is acknowledged, and no transaction is open."""
        work: list[Callable[[threading.Event], None]] = [each.run for each in self.producers]
        with ThreadPoolExecutor(len(work) + 1) as threads:
            self._threads = [threads.submit(run, self._stop) for run in (*work, self.transactions.run)]
            try:
                yield
            except BaseException:
                for each in self.producers:
                    each.is_abandoned = True
                raise
            finally:
                self._stop.set()
        self._check()
