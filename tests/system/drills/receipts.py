"""A hostile stream of receipts, and the expected result, derived from the stream alone without product code.

It is sent to the broker in two parts: one with receipt times of hours ago, the rest now, at a steady rate.
"""

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from master_dataset.kafka.ingest import ingest
from master_dataset.parsing.parse import key_of
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings

STORES = [str(number) for number in range(1, 21)]
Identity = tuple[str, int, int, str]


@dataclass(frozen=True)
class Sent:
    """One line. `identity`: None for one that is broken. `minor`: what the receipt adds up to, in cents."""

    line: bytes
    identity: Identity | None
    minor: int = 0


@dataclass
class Expected:
    """What everything that was handed to a producer so far may add up to at most, and has to in the end."""

    firsts: dict[Identity, Sent] = field(default_factory=dict)
    sent: int = 0
    broken: int = 0
    conflicts: int = 0

    def add(self, each: Sent) -> None:
        """The first that is sent of an identity counts: an identity is one store's, and a store is one partition's."""
        self.sent += 1
        if each.identity is None:
            self.broken += 1
        else:
            self.conflicts += self.firsts.setdefault(each.identity, each).line != each.line

    @property
    def receipts(self) -> int:
        """Events."""
        return len(self.firsts)

    @property
    def minor(self) -> int:
        """Net sales in cents."""
        return sum(each.minor for each in self.firsts.values())


def stream(seed: int, receipts: int, now: datetime) -> list[Sent]:
    """The lines in the order in which they are sent.

    A tenth is sent again, half of that much later; a twentieth is days old; a tenth shares its second with others; a
    hundredth is broken, and one in two hundred comes again with another content.
    """
    chance = random.Random(seed)
    keyed: list[tuple[float, Sent]] = []
    for number in range(receipts):
        place = number + chance.uniform(0, 50)  # shuffled, a little
        each = _receipt(chance, number, now)
        if number % 100 == 50:
            keyed.append((place, Sent(each.line[:-1] + b",", None)))
            continue
        keyed.append((place, each))
        if number % 10 == 3:
            keyed.append((place + chance.choice([1, chance.uniform(0, receipts)]), each))
        if number % 200 == 7:
            other = each.line.replace(b'"Milk"', b'"Beer"', 1)
            keyed.append((place + chance.uniform(1, receipts / 2), Sent(other, each.identity, each.minor)))
    return [each for _, each in sorted(keyed, key=lambda pair: pair[0])]


def _receipt(chance: random.Random, number: int, now: datetime) -> Sent:
    late = timedelta(days=chance.uniform(2, 9)) if number % 20 == 0 else timedelta(hours=chance.uniform(0, 9))
    happened_at = now - timedelta(hours=11) - late
    if number % 10 == 1:
        happened_at = now.replace(microsecond=0) - timedelta(hours=12)
    amounts = [(chance.randint(1, 9999), chance.randint(1, 3)) for _ in range(chance.randint(1, 5))]
    happened = happened_at.isoformat(timespec="milliseconds")
    store, till = chance.choice(STORES), chance.randint(1, 6)
    body = {
        "happened_at": happened,
        "operation_id": store,
        "transaction_id": number,
        "vendor_fiscal_module": till,
        "transactions": [
            {"title": "Milk" if place == 0 else f"item {place}", "price": price / 100, "amount": amount}
            for place, (price, amount) in enumerate(amounts)
        ],
    }
    minor = sum(price * amount for price, amount in amounts)
    return Sent(json.dumps(body).encode(), (store, till, number, happened), minor)


def split(lines: Sequence[Sent], share: float) -> tuple[Sequence[Sent], Sequence[Sent]]:
    """The first part, and the rest."""
    place = int(len(lines) * share)
    return lines[:place], lines[place:]


TIMEOUT_SECONDS = 60


def received_in_the_past(
    settings: "Settings", lines: Sequence[Sent], first: datetime, last: datetime, expected: Expected
) -> None:
    """Records whose receipt time is spread evenly over [first, last): the topic takes the sender's time meanwhile."""
    step = (last - first) / max(len(lines), 1)
    producer = Producer(
        {
            **settings.kafka.connection.client(),
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
        }
    )
    key = key_of(POS_TRANSACTIONS)
    with stamped_by(settings, "CreateTime"):
        for number, each in enumerate(lines):
            expected.add(each)
            stamp = int((first + step * number).timestamp() * 1000)
            own = key(each.line)
            where = {"partition": 0} if own is None else {"key": own}
            producer.produce(POS_TRANSACTIONS.topic, each.line, timestamp=stamp, **where)
            producer.poll(0)
        assert producer.flush(TIMEOUT_SECONDS) == 0


@contextmanager
def stamped_by(settings: "Settings", kind: str) -> Iterator[None]:
    """The topic's records get their time from `kind` inside, and from the broker again behind it."""
    _stamps_of(settings, kind)
    yield
    _stamps_of(settings, "LogAppendTime")


def _stamps_of(settings: "Settings", kind: str) -> None:
    admin = AdminClient(settings.kafka.connection.client())
    entry = ConfigEntry("message.timestamp.type", kind, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, POS_TRANSACTIONS.topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_SECONDS)
    topic_config = ConfigResource(ResourceType.TOPIC, POS_TRANSACTIONS.topic)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (
        admin.describe_configs([topic_config])[topic_config].result(TIMEOUT_SECONDS)["message.timestamp.type"].value
        != kind
    ):
        assert time.monotonic() < deadline, f"the topic does not take {kind}"
        time.sleep(0.1)


class Feeding(threading.Thread):
    """Sends lines while other things happen, until they are all sent. `acknowledged` when it is over."""

    def __init__(self, settings: "Settings", lines: Sequence[Sent], rate: float, expected: Expected) -> None:
        super().__init__(name="feeding", daemon=True)
        self._settings, self._lines, self._pause, self._expected = settings, lines, 1 / rate, expected
        self._hurry = threading.Event()
        self.acknowledged = 0

    def run(self) -> None:
        result = ingest(POS_TRANSACTIONS, self._paced(), self._settings.kafka.connection, lambda _: None)
        self.acknowledged = result.acknowledged

    def finish(self) -> None:
        """Send what is left at once, and wait until all is acknowledged."""
        self._hurry.set()
        self.join()

    def _paced(self) -> Iterator[bytes]:
        for each in self._lines:
            self._expected.add(each)  # from here on an answer may contain it
            yield each.line
            self._hurry.wait(self._pause)
