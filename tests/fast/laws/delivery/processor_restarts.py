"""The alert processor, killed at any call, on an in-memory broker that repeats commits unnoticed."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import patch

import msgspec

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from speed_layer.alerts.identities import NoIdentities
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig
from speed_layer.alerts.snapshots import Snapshot, Snapshots
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import State
from tests.fast.laws.delivery.broker import Admin, Broker, Consumer, Killed, Place, Transaction
from tests.fast.laws.delivery.producer import Producer
from tests.support.alert_signatures import MemoryFirstSigned, signatures_of
from tests.support.alerting import MARKER, at_ms, rule_history_of, value
from views.alerts.alert import CORRECTIONS_TOPIC
from views.alerts.timings import AlertTimings

TILLS: Place = ("pos_transactions", 0)
EMITTED: Place = ("alerts", 0)
RULE_HISTORY = rule_history_of(
    {"kind": "threshold", "id": "many", "metric": "total_transactions_count", "window": "15m", "above": 1},
    {"kind": "threshold", "id": "much", "metric": "net_sales", "window": "15m", "above": 3},
)
BEGIN, MINUTE = at_ms("2026-03-07 09:00"), 60_000
RECORDS, RESTARTS = 40, 12
ON_DISK_EVERY = 5
"""Seeds between those whose snapshots are on disk, with identities moved there as soon as there are a few."""
FEW_IDENTITIES = 4


class Over(BaseException):
    """Everything is read."""


class MemoryRuleStore:
    def read(self) -> object:
        return RULE_HISTORY


class Kept:
    """Snapshots in memory; now and then they are gone."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._newest: tuple[dict[str, int], dict[str, bytes]] | None = None

    def save(self, positions: Mapping[str, int], states: Mapping[str, State], _: Mapping[str, TopicIdentity]) -> None:
        self._newest = dict(positions), {topic: each.to_bytes() for topic, each in states.items()}

    def identities(self, _: str) -> NoIdentities:
        return NoIdentities()

    def spill(self, _: Mapping[str, State]) -> None:
        """There is memory enough."""

    def load(self, committed: Mapping[str, int], _: Mapping[str, TopicIdentity]) -> Snapshot | None:
        if self._newest is None or self._chance.random() < 0.2:
            return None
        positions, states = self._newest
        if any(at > committed[topic] for topic, at in positions.items()):
            return None
        return Snapshot(positions, {topic: State.from_bytes(kept) for topic, kept in states.items()})


def sold(broker: Broker) -> None:
    """Receipts of an hour and a half, of which a fifth come again; some were aborted by their sender."""
    chance = broker.chance
    lines = [value(TILLS[0], BEGIN + n * 2 * MINUTE, transaction_id=n, transactions=_items(n)) for n in range(RECORDS)]
    for number, line in enumerate(lines):
        broker.now_ms = BEGIN + number * 2 * MINUTE + 1000
        aborted = Transaction("a till", outcome="aborted") if chance.random() < 0.2 else None
        broker.append(TILLS, line, (), aborted)
        if chance.random() < 0.2:
            broker.append(TILLS, chance.choice(lines[: number + 1]), ())
    broker.now_ms += 30 * MINUTE
    broker.append(TILLS, b"", MARKER)


def _items(number: int) -> list[dict[str, object]]:
    return [{"title": "thing", "price": number % 5, "amount": 1}]


def expected(broker: Broker) -> list[str]:
    """The alerts of what is committed, folded once from the beginning."""
    fold, found = Fold(registered_sources()[TILLS[0]], 0, AlertTimings()), list[str]()
    for each in broker.visible(TILLS):
        entry = LogRecord(each.offset, each.stamp_ms, each.value, each.headers)
        found += [alert.alert_id for alert in fold.step(entry, RULE_HISTORY)]
    return found


def emitted(broker: Broker) -> list[str]:
    """What a `read_committed` reader finds."""
    return [msgspec.json.decode(each.value or b"")["alert_id"] for each in broker.visible(EMITTED)]


def lived(seed: int, *, reports_faults: bool) -> Broker:
    """Killed some times at any call, then left alone until everything is read."""
    broker = Broker(Random(seed))
    sold(broker)
    broker.committed[TILLS] = broker.committed[CORRECTIONS_TOPIC, 0] = 0
    kept, first_signed = Kept(broker.chance), MemoryFirstSigned()
    with TemporaryDirectory() as folder:
        for life in range(RESTARTS):
            calls = broker.chance.randint(1, 150) if life < RESTARTS - 1 else None
            on_disk = Snapshots(Path(folder))
            snapshots = kept if seed % ON_DISK_EVERY else on_disk
            _live(broker, (snapshots, first_signed), calls, reports_faults=reports_faults)
            on_disk.close()
    return broker


def _live(
    broker: Broker, stored: tuple[Kept | Snapshots, MemoryFirstSigned], calls: int | None, *, reports_faults: bool
) -> None:
    (kept, first_signed), left = stored, [calls]

    def before_call() -> None:
        if left[0] is not None:
            left[0] -= 1
            if not left[0]:
                raise Killed

    def idle() -> None:
        if broker.committed[TILLS] >= broker.stable(TILLS):
            raise Over

    def before_answer() -> None:
        if left[0] is not None and broker.chance.random() < 0.2:
            raise Killed

    broker.before_call, broker.before_answer = before_call, before_answer
    work = ProcessorConfig(
        KafkaConnection("memory"),
        [TILLS[0]],
        Partitions(1),
        MemoryRuleStore(),  # type: ignore[arg-type]
        kept,  # type: ignore[arg-type]
        signatures_of(first_signed),
    )
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=partial(next, iter(range(0, 10**9, 20))))
    with (
        patch(
            "speed_layer.alerts.sender.Producer",
            lambda said: Producer(broker, said, 0.3, reports_faults=reports_faults),
        ),
        patch("speed_layer.alerts.source.Consumer", lambda said: Consumer(broker, said, idle)),
        patch("speed_layer.alerts.source.AdminClient", lambda _: Admin(broker)),
        patch("speed_layer.alerts.processor.time", clock),
        patch("speed_layer.alerts.processor.MAX_IDENTITIES", FEW_IDENTITIES),
    ):
        try:
            AlertProcessor(work, 0).run()
        except (Killed, Over):
            broker.before_call = lambda: None


def emit_each_alert_once(seeds: int = 25) -> None:
    """I06 to I08: each alert once, nothing of a transaction for which nobody had asked."""
    for seed in range(seeds):
        broker = lived(seed, reports_faults=True)
        assert sorted(emitted(broker)) == sorted(expected(broker)), f"seed {seed}"
        assert broker.unrequested == 0, f"seed {seed}: a transaction was committed in half"


def emit_each_alert_once_whatever_was_committed(seeds: int = 25) -> None:
    """I06 also where statistics say nothing of a commit that was repeated, and half a transaction is committed."""
    unrequested = 0
    for seed in range(seeds):
        broker = lived(seed, reports_faults=False)
        assert sorted(emitted(broker)) == sorted(expected(broker)), f"seed {seed}"
        unrequested += broker.unrequested
    assert unrequested, "no transaction was committed partially"
