"""One seed, one exact run: the alert processor on an in-memory broker, killed and replaced until it has finished."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import Mock, patch

import msgspec

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.registry.stores import Store
from speed_layer.alerts import processor as processing
from speed_layer.alerts import sender
from speed_layer.alerts import source as inlet
from speed_layer.alerts.identities import IdentityTable
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig
from speed_layer.alerts.sender import FencedError
from speed_layer.alerts.snapshots import Snapshot, Snapshots
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import State
from tests.fast.model.alert_processor.memory_clients import (
    NOBODY,
    Killed,
    MemoryAdmin,
    MemoryConsumer,
    MemoryProducer,
    Process,
)
from tests.fast.model.alert_processor.memory_kafka import MemoryKafka, Slot
from tests.support.alert_signatures import MemoryFirstSigned, signatures_of
from tests.support.alerting import at_ms, rule_history_of, value
from views.alerts.alert import CORRECTIONS_TOPIC, Alert, Window, format_instant, raised_id
from views.alerts.corrections import resolution_of
from views.alerts.rule_history import RuleHistory

TOPIC, ALERTS, CORRECTIONS = ("pos_transactions", 0), ("alerts", 0), (CORRECTIONS_TOPIC, 0)
RECORDS, STORES = 60, 25
REQUESTED = 5
"""Records that publications ask for; each twice, as by an audit that was killed and done again."""
BEGIN = at_ms("2026-03-07 10:00")
BOUNDS = (0, 2)
RULE_HISTORY = rule_history_of(
    *(
        {
            "kind": "threshold",
            "id": f"above-{each}",
            "metric": "total_transactions_count",
            "window": "hour",
            "above": each,
        }
        for each in BOUNDS
    ),
    stores=[Store(id=str(number), timezone="Europe/Bratislava") for number in range(STORES)],
)


@dataclass(frozen=True)
class Counted:
    """What went wrong. `behind`: records that the committed position never passed; `back`: times that it went back."""

    lost: int = 0
    twice: int = 0
    phantom: int = 0
    premature: int = 0
    behind: int = 0
    back: int = 0

    @property
    def wrong(self) -> set[str]:
        """Which of them."""
        return {name for name, number in asdict(self).items() if number}


@dataclass(frozen=True)
class Variant:
    """What runs: the product's alert processor, or one with something changed. `blind`: statistics show no repeats.

    `isolation`: with which its consumer reads, if not as the product's does.
    """

    kind: type[AlertProcessor] = AlertProcessor
    blind: bool = False
    isolation: str = ""


class MemorySnapshots(Snapshots):
    """On no disk."""

    def __init__(self) -> None:
        super().__init__(Path())
        self._kept: list[tuple[dict[str, int], dict[str, bytes]]] = []
        self._nothing = sqlite3.connect(":memory:")

    def save(
        self, positions: Mapping[str, int], states: Mapping[str, State], logs: Mapping[str, TopicIdentity]
    ) -> None:
        assert logs
        self._kept.append((dict(positions), {topic: state.to_bytes() for topic, state in states.items()}))

    def identities(self, topic: str) -> IdentityTable:
        """Of none: they are in the states."""
        return IdentityTable(self._nothing, topic)

    def spill(self, states: Mapping[str, State]) -> None:
        """They stay in the states."""

    def load(self, committed: Mapping[str, int], logs: Mapping[str, TopicIdentity]) -> Snapshot | None:
        assert logs
        for positions, states in reversed(self._kept):
            if all(at <= committed[topic] for topic, at in positions.items()):
                return Snapshot(positions, {topic: State.from_bytes(kept) for topic, kept in states.items()})
        return None


class MemoryRuleStore:
    def read(self) -> RuleHistory:
        return RULE_HISTORY


def processor_config(folder: Path, emitted: Callable[[Sequence[Alert]], None]) -> ProcessorConfig:
    """A processor of one partition in memory. `folder`: of its snapshots. `emitted`: is given what it emits."""
    return ProcessorConfig(
        KafkaConnection("memory"),
        [TOPIC[0]],
        Partitions(1),
        MemoryRuleStore(),
        Snapshots(folder),
        signatures_of(),
        emitted=emitted,
        known_alerts_retention=timedelta(days=5),
    )


class Clock:
    """No time passes where somebody would wait."""

    monotonic = staticmethod(lambda: 0.0)
    sleep = staticmethod(lambda _: None)


class Simulated:
    """A log of receipts, and alert processors that live one after the other, or one inside the life of another."""

    def __init__(self, seed: int, variant: Variant) -> None:
        self._chance, self._variant = Random(seed), variant
        self._broker, self._snapshots = MemoryKafka(now_ms=BEGIN), MemorySnapshots()
        self._premature, self._first_signed = 0, MemoryFirstSigned()
        self._expected = self._sent()
        self._requests = self._requested()

    def run(self) -> Counted:
        """Until a last alert processor, that nobody harms, has had its time."""
        for _ in range(self._chance.randint(3, 12)):
            self._live(self._chance.randint(5, 120))
        self._live(3000, is_harmed=False)
        end = len(self._broker.logs[TOPIC])
        found = [each for each in self._visible() if each.kind == "raised"]
        ids = Counter(each.alert_id for each in self._visible())
        keys = {(each.rule, each.store) for each in found if each.cause is None}
        corrected = {each.alert_id for each in self._visible() if each.cause is not None}
        left = len(self._broker.logs[CORRECTIONS]) - self._broker.committed[CORRECTIONS]
        return Counted(
            lost=len(self._expected - keys) + len(self._requests - ids.keys()),
            phantom=len(keys - self._expected) + len(corrected - self._requests),
            twice=sum(count - 1 for count in ids.values()),
            premature=self._premature,
            behind=end - self._broker.committed[TOPIC] + left,
            back=self._broker.back,
        )

    def _sent(self) -> set[tuple[str, str]]:
        """Write the receipts. Returns what has to be emitted: rule and store."""
        sold = Counter[str]()
        for number in range(RECORDS):
            store = str(self._chance.randrange(STORES))
            sold[store] += 1
            line = {"title": "thing", "price": 1, "amount": 1}
            body = value(
                "pos_transactions", BEGIN + number, operation_id=store, transaction_id=number, transactions=[line]
            )
            self._broker.logs.setdefault(TOPIC, []).append(Slot(body, BEGIN + number))
        self._broker.committed[TOPIC] = self._broker.committed[CORRECTIONS_TOPIC, 0] = 0
        return {(f"above-{bound}", store) for store, count in sold.items() for bound in BOUNDS if count > bound}

    def _requested(self) -> set[str]:
        """Write what publications ask for, of windows that the receipts say nothing of. The ids."""
        window = Window(format_instant(BEGIN - 7_200_000), format_instant(BEGIN - 3_600_000))
        found = list[Alert]()
        for number in range(REQUESTED):
            store = str(number % STORES)
            alert_id = raised_id("above-0", 1, ("default", store), window, {"n": str(number)})
            raised = Alert(
                alert_id=alert_id,
                kind="raised",
                rule="above-0",
                version=1,
                tenant="default",
                store=store,
                window=window,
                dimensions={},
                value=Decimal(1),
                threshold=Decimal(0),
                sentence="Late.",
                late=True,
                raised_at=format_instant(BEGIN),
                publication=1,
                cause="late",
            )
            found += [raised, resolution_of(raised)]
        for each in (*found, *found):
            self._broker.logs.setdefault(CORRECTIONS, []).append(Slot(each.to_json(), BEGIN))
        return {each.alert_id for each in found}

    def _live(self, calls: int, *, is_harmed: bool = True, is_inner: bool = False) -> None:
        """One process, until it dies, is fenced or has had its time. A twin may live in the middle of it."""
        inner = NOBODY if is_inner else lambda: self._live(self._chance.randint(5, 60), is_inner=True)
        process = Process(self._broker, self._chance, calls, inner)
        process.is_harmed, process.blind = is_harmed, self._variant.blind
        own = [TOPIC[0]]
        signatures = signatures_of(self._first_signed)
        work = ProcessorConfig(
            KafkaConnection("memory"), own, Partitions(1), MemoryRuleStore(), self._snapshots, signatures
        )
        with suppress(Killed, FencedError), in_process(process, self._variant):
            self._variant.kind(work, 0).run()
        if not is_inner:
            self._premature += self._ahead()

    def _visible(self) -> Iterator[Alert]:
        for slot in self._broker.logs.get(ALERTS, []):
            if slot.is_visible("read_committed"):
                yield msgspec.json.decode(slot.value or b"", type=Alert)

    def _ahead(self) -> int:
        """Visible alerts of records that no committed position has passed."""
        places = [each.place.offset for each in self._visible() if each.place is not None]
        return sum(offset >= self._broker.committed[TOPIC] for offset in places)


@contextmanager
def in_process(process: Process, variant: Variant, kind: type[MemoryConsumer] = MemoryConsumer) -> Iterator[None]:
    """The clients of the alert processor are those of this process."""

    def consumer(settings: Mapping[str, object]) -> MemoryConsumer:
        own = {"isolation.level": variant.isolation} if variant.isolation else {}
        return kind(process, {**settings, **own})

    with ExitStack() as patched:
        patched.enter_context(patch.object(inlet, "Consumer", consumer))
        patched.enter_context(patch.object(inlet, "AdminClient", lambda _: MemoryAdmin(process)))
        patched.enter_context(patch.object(sender, "Producer", partial(MemoryProducer, process)))
        patched.enter_context(patch.object(processing, "time", Clock))
        patched.enter_context(patch.object(processing, "log", Mock()))
        yield


def counted(seeds: range, variant: Variant) -> Counter[str]:
    """In how many runs each thing went wrong."""
    found = Counter[str]()
    for seed in seeds:
        found.update(Simulated(seed, variant).run().wrong)
    return found
