"""A steady load: receipts of twenty stores, some sent twice, some invalid, up to thirty hours late."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.system.drills.receipts import STORES
from tests.system.drills.till_roll import Delivery, Slip, TillRoll

LATENESS_HOURS = (*[0.0] * 12, 0.2, 1, 3, 8, 16, 22.5, 26, 30)
"""Of receipts, each as likely as the other; none is near the age at which speed leaves it to batch."""
LOOK_SECONDS = 1.0
BEFORE = 200


class Mix(NamedTuple):
    """`rate`: records a second. `twice`, `broken`: shares of them. `reach`: how many receipts back a repeat may reach.

    `spread`: receipts are late by up to so many seconds more.
    """

    rate: float = 200
    twice: float = 0.05
    broken: float = 0.02
    reach: int = BEFORE
    spread: float = 0.0


class Load(threading.Thread):
    """Sends until stopped; it can be paused."""

    def __init__(self, kafka: KafkaConnection, seed: int, mix: Mix, roll: TillRoll) -> None:
        super().__init__(name="load", daemon=True)
        self._chance, self._mix, self._roll = Random(seed), mix, roll
        self._sends, self._leave, self._rests = threading.Event(), threading.Event(), threading.Event()
        self._recent: list[Slip] = []
        self._rate = mix.rate
        self._number = 0
        self._producer = Producer(
            {
                **kafka.client(),
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "partitioner": "murmur2_random",
                "delivery.timeout.ms": 600_000,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )

    def run(self) -> None:
        """A thread's work: as many as are due, ten times a second."""
        while not self._leave.is_set():
            if not self._sends.is_set():
                self._producer.flush()
                self._rests.set()
                self._sends.wait(0.1)
                continue
            for _ in range(round(self._rate / 10)):
                self._send(self._next())
            self._producer.poll(0)
            time.sleep(0.1)
        self._producer.flush()

    def pace(self, rate: float) -> None:
        """Send so many records a second from now on."""
        self._rate = rate

    def go_on(self) -> None:
        """Send again."""
        self._rests.clear()
        self._sends.set()

    def rest(self) -> None:
        """Send nothing; return when everything that was sent is acknowledged. RuntimeError if the thread has ended."""
        self._sends.clear()
        self._rests.clear()
        while not self._rests.wait(LOOK_SECONDS):
            if not self.is_alive():
                raise RuntimeError("the load has ended, so nobody knows whether all that it sent is acknowledged")

    def leave(self) -> None:
        """Send nothing any more."""
        self._leave.set()
        self.join()

    def _next(self) -> Slip:
        drawn = self._chance.random()
        if drawn < self._mix.twice and self._recent:
            return self._chance.choice(self._recent)
        self._number += 1
        slip = _receipt(self._chance, self._number, self._mix.spread)
        if drawn > 1 - self._mix.broken:
            return Slip(slip.value[:-1] + b",", slip.store)
        self._recent.append(slip)
        del self._recent[: -self._mix.reach - 1]
        return slip

    def _send(self, slip: Slip) -> None:
        self._roll.hand_over(slip)

        def delivery_reported(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._roll.is_unknown(slip)
                return
            stamp = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
            self._roll.delivered(Delivery(slip, message.partition() or 0, message.offset() or 0, stamp))

        while True:
            try:
                self._producer.produce(POS_TRANSACTIONS.topic, slip.value, slip.store, on_delivery=delivery_reported)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return


def _receipt(chance: Random, number: int, spread: float) -> Slip:
    store, late = chance.choice(STORES), timedelta(hours=chance.choice(LATENESS_HOURS))
    if spread:
        late += timedelta(seconds=chance.uniform(0, spread))
    happened_at = (datetime.now(UTC) - late).replace(microsecond=chance.randrange(1000) * 1000)
    prices = [chance.randint(1, 9999) for _ in range(chance.randint(1, 3))]
    body = {
        "happened_at": happened_at.isoformat(timespec="milliseconds"),
        "operation_id": store,
        "transaction_id": number,
        "vendor_fiscal_module": 1,
        "transactions": [{"title": "thing", "price": each / 100, "amount": 1, "sku": "1"} for each in prices],
    }
    return Slip(json.dumps(body).encode(), store, (store, number), happened_at, sum(prices))
