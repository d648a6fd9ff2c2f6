"""From the broker's acknowledgement of an event to its alert, as a read_committed consumer sees it.

The baseline is a loop that consumes the same events and produces a record for the same ones, without transaction, state
or rule. Both are timed on each event, while 200 others per second arrive.
"""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING

import msgspec
import orjson
from confluent_kafka import Consumer, TopicPartition

from benchmarks import bare, local, traffic
from benchmarks.report import Measured, percentile
from benchmarks.traffic import ReceiptStream, in_background
from master_dataset.kafka.topics import Topics
from master_dataset.registry.registry import Registry
from master_dataset.registry.rule_versions import RuleVersions
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.alerts.alert import ALERTS_TOPIC
from views.alerts.rule_validation import parse_rule

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 300
"""Events that are timed: each is the first of a store of its own."""
FIRST_STORE = 10_000
PER_SECOND = 200
PAUSE = 0.13  # seconds; not a multiple of any period
GIVE_UP = 120.0
WARM_UP = 5
RULE = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "15m", "above": 0}
QUICK = {"GALATEA_ALERT_RULES_SECONDS": "6", "GALATEA_ALERTS_TICK_SECONDS": "1"}


def alerts(size: int) -> Iterator[Measured]:
    """p50 and p99 of so many events."""
    os.environ |= QUICK
    with local.own_home() as settings, local.running(settings, "kafka", "cassandra", "alerts"):
        local.new_topic(settings, bare.TOPIC)
        _register(settings, size + WARM_UP)
        stream = ReceiptStream(settings, POS_TRANSACTIONS.topic, PER_SECOND)
        emitted, copied = _Seen(settings, ALERTS_TOPIC), _Seen(settings, bare.TOPIC)
        with in_background(stream), in_background(_Copying(settings)), in_background(emitted), in_background(copied):
            sent = _sent(settings, size + WARM_UP, emitted, copied)
    ours, simple = ([seen.at[store] - at for store, at in sent.items()][WARM_UP:] for seen in (emitted, copied))
    details = {"events": size, "sent_per_second": round(stream.rate)}
    for name, share in {"p50": 0.5, "p99": 0.99}.items():
        both = (percentile(ours, share), percentile(simple, share))
        yield Measured(f"alerts {name}", *both, "s", "bare loop", better="low", details=details)


def _register(settings: "Settings", stores: int) -> None:
    """Stores and the rule hold when this is over."""
    session = local.cassandra(settings)
    named = [str(number) for number in (*range(1, traffic.STORES + 1), *range(FIRST_STORE, FIRST_STORE + stores))]
    Registry(session).save(Edit([Store(id=each, timezone="UTC") for each in named]), settings.layers.skew)
    versions = RuleVersions(session, timedelta(seconds=settings.alerts.rules_seconds))
    last = versions.add("rule", "default/any", msgspec.json.encode(parse_rule(RULE)).decode())

    def noted() -> int:
        return sum(row.kind == "store" for row in versions.read())

    local.until(lambda: noted() >= len(named), "the stores in the book of alerts")
    local.until(lambda: datetime.now(UTC) > last.effective_at, "the rule")
    time.sleep(2 * settings.alerts.rules_seconds)


def _sent(settings: "Settings", probes: int, emitted: "_Seen", copied: "_Seen") -> dict[str, float]:
    """Store to when the broker had its event; one after the other, each when both have seen the one before."""
    sending, found = bare.producer(settings.kafka.connection, linger_ms=0), dict[str, float]()
    for number in range(probes):
        store = str(FIRST_STORE + number)
        body = orjson.loads(next(traffic.live_receipts(number)))
        body |= {"operation_id": int(store), "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        sending.produce(POS_TRANSACTIONS.topic, orjson.dumps(body), key=store)
        sending.flush()
        found[store] = time.monotonic()
        deadline = found[store] + GIVE_UP
        while not (store in emitted.at and store in copied.at):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the alert of store {store}")
            time.sleep(0.005)
        time.sleep(PAUSE)
    return found


class _Seen:
    """When a record of each key was first seen, in `at`."""

    def __init__(self, settings: "Settings", topic: str) -> None:
        """From the end of the topic."""
        self.at: dict[str, float] = {}
        self._consumer = _from_the_end(settings, topic)

    def __call__(self, leave: Event) -> None:
        """Runs until stopped."""
        while not leave.is_set():
            for message in self._consumer.consume(100, 0.01):
                if not message.error():
                    self.at.setdefault((message.key() or b"").decode(), time.monotonic())
        self._consumer.close()


class _Copying:
    """The bare loop: a record for each event of a store that is timed."""

    def __init__(self, settings: "Settings") -> None:
        """From the end of the topic."""
        self._consumer = _from_the_end(settings, POS_TRANSACTIONS.topic)
        self._producer = bare.producer(settings.kafka.connection, linger_ms=0)

    def __call__(self, leave: Event) -> None:
        """Runs until stopped."""
        while not leave.is_set():
            for message in self._consumer.consume(500, 0.01):
                value = None if message.error() else message.value()
                store = orjson.loads(value)["operation_id"] if value else 0
                if store >= FIRST_STORE:
                    self._producer.produce(bare.TOPIC, value, key=str(store))
            self._producer.flush()
        self._consumer.close()


def _from_the_end(settings: "Settings", topic: str) -> Consumer:
    consumer = Consumer(
        {
            **settings.kafka.connection.client(),
            "group.id": "bench",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    ends = Topics(settings.kafka.connection).end_offsets(topic)
    consumer.assign([TopicPartition(topic, number, at) for number, at in ends.items()])
    return consumer
