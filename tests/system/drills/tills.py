"""Tills that send receipts and compute the expected alerts: the oracle of the drills of alerts."""

import json
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import Self

from confluent_kafka import Producer

from master_dataset.kafka.connection import KafkaConnection

QUARTER, WINDOWS = 900, 4
"""So few that the oldest is still fresh an hour later."""
PER_WINDOW = 14
"""Receipts of a store."""
BOUNDS = range(500, 10_500, 500)
"""In cents: a rule each."""
Key = tuple[str, str, str]
"""Rule, store and start of the window."""


def stores_for(alerts: int) -> int:
    """How many it takes to have so many alerts."""
    return max(1, -(-alerts // (WINDOWS * len(BOUNDS))))


class Tills:
    """Send receipts of many stores, some of them twice. `sums`: in cents, by store and window."""

    def __init__(self, kafka: KafkaConnection, stores: int, seed: int) -> None:
        self.sums: Counter[tuple[str, int]] = Counter()
        self.sent = 0
        self.planned = stores * WINDOWS * PER_WINDOW
        self._lock = threading.Lock()
        self._chance = Random(seed)
        self._stores = [str(number) for number in range(1, stores + 1)]
        self._newest = int(time.time()) // QUARTER * QUARTER - QUARTER
        self._producer = Producer(
            {
                **kafka.client(),
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )

    def send_some(self, receipts: int) -> None:
        """So many, one in ten of them twice."""
        with self._lock:
            for _ in range(receipts):
                self._send()
            self._producer.poll(0)

    def finish(self) -> set[Key]:
        """Send the rest of the plan. Returns the expected alerts, now that everything is on the broker."""
        while self.sent < self.planned:
            self.send_some(100)
        assert self._producer.flush(120) == 0
        return {
            (f"above-{bound}", store, datetime.fromtimestamp(window, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
            for (store, window), cents in self.sums.items()
            for bound in BOUNDS
            if cents > bound
        }

    def _send(self) -> None:
        store, cents = self._chance.choice(self._stores), self._chance.randrange(1, 3000)
        window = self._newest - QUARTER * self._chance.randrange(WINDOWS)
        happened = window + self._chance.random() * (QUARTER - 1)
        self.sent += 1
        self.sums[store, window] += cents
        line = {"title": "thing", "price": cents / 100, "amount": 1}
        body = {
            "happened_at": datetime.fromtimestamp(happened, UTC).isoformat(timespec="milliseconds"),
            "operation_id": store,
            "transaction_id": self.sent,
            "vendor_fiscal_module": 1,
            "transactions": [line],
        }
        for _ in range(2 if self.sent % 10 == 0 else 1):
            self._producer.produce("pos_transactions", key=store, value=json.dumps(body).encode())


class Feeder:
    """Sends what it is asked for at its own pace, whatever else happens. Use as a context manager."""

    PER_ROUND, ROUND_SECONDS = 10, 0.03

    def __init__(self, tills: Tills) -> None:
        self._tills = tills
        self._requested, self._done, self._over = 0, 0, False
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._thread.join()

    def add(self, receipts: int) -> None:
        """So many more."""
        self._requested += receipts

    def _run(self) -> None:
        while not self._over:
            if (now := min(self.PER_ROUND, self._requested - self._done)) > 0:
                self._tills.send_some(now)
                self._done += now
            time.sleep(self.ROUND_SECONDS)
