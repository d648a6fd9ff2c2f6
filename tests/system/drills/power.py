"""`python -m tests.system.drills.power`: power cuts of brokers, again and again, under load (D03). As root.

It starts only the brokers, configured as by `galatea up`, each with a disk of its own. Producers with the settings of
ingest and API send numbered records, and another one sends transactions with the settings of the alert processor.
Again and again a broker is stopped, loses what its disk does not have yet, and is started again. In the end the log
must have each acknowledged record at its acknowledged place, no batch twice, no record out of order, and readers must
see each committed transaction completely, and nothing of others.

With three brokers, one of them is cut at a time, and the next one not before every partition has all of its copies in
sync again. Without that, nothing is guaranteed: a majority acknowledges a record in memory, so two brokers that lose
what they have not written may lose it.

`--naive` must fail: one broker does not sync before it acknowledges; three lose their power at once.

Prints one line and appends it to the ledger, power.jsonl. If an invariant is broken, the logs of transactions are kept
beside it.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaException, TopicPartition

from deploy.local.nodes import ONE, THREE
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.topics import Topics
from tests.system.drills.drilled_broker import settings_for
from tests.system.drills.faults import exit_on_sigterm, wait_until
from tests.system.drills.ledger_line import FOLDER, append
from tests.system.drills.power_brokers import PoweredBrokers, powered_brokers
from tests.system.drills.power_check import (
    Acknowledged,
    Batch,
    Broken,
    Outcome,
    Place,
    batches_of,
    check_records,
    check_sequences,
    check_transactions,
    check_watermarks,
)
from tests.system.drills.power_load import GROUP, PARTITIONS, RECORDS_TOPIC, PowerLoad
from views.alerts.alert import ALERTS_TOPIC

CALM = (0.2, 2.5)
"""Seconds before a cut, at least and at most."""
TRANSACTION_SECONDS = 5.0
"""How long a next transaction may delay the next cut."""
CHECK_EVERY, REPORT_SECONDS = 20, 60.0
CALL_SECONDS, SETTLE_SECONDS = 10.0, 90.0


@dataclass(frozen=True)
class Plan:
    """`cuts`: of the power; `minutes`: after so many no further one begins. `naive`: see the module."""

    cuts: int
    brokers: int
    seed: int = 1
    minutes: float = 600.0
    naive: bool = False


@dataclass
class Played:
    """What was done, and what came of it.

    `unknown`, `unplaced`: records that a producer gave up, or confirmed without a place, and that were sent again.

    `transactions`: acknowledged commits; `aborted`: transactions that nobody committed; `undecided`: others; `hung`:
    their producers that would have waited for ever. `replaced`: other producers that could not go on.
    `slowest_recovery_s`: from the start of a broker until every copy is in sync and a record was acknowledged.
    """

    plan: Plan
    cuts: int = 0
    acknowledged: int = 0
    unplaced: int = 0
    unknown: int = 0
    replaced: int = 0
    transactions: int = 0
    aborted: int = 0
    undecided: int = 0
    hung: int = 0
    broken: Broken = field(default_factory=Broken)
    slowest_recovery_s: float = 0.0
    seconds: float = 0.0

    @property
    def is_well(self) -> bool:
        """Nothing is broken, and there was something to break."""
        return self.broken.is_nothing and min(self.cuts, self.acknowledged, self.transactions) > 0

    def summary(self) -> dict[str, object]:
        """As a line of the ledger."""
        fields = asdict(self)
        broken = fields.pop("broken")
        return {**fields, **broken}


class Cuts:
    """The cuts of one run, and the checks during it."""

    def __init__(self, brokers: PoweredBrokers, load: PowerLoad, kafka: KafkaConnection, played: Played) -> None:
        """`brokers` serve, and `load` is running."""
        self._brokers, self._load, self._played = brokers, load, played
        self._kafka, self._topics = kafka, Topics(kafka)
        self._chance = Random(f"power {played.plan.seed}")
        self._since = dict.fromkeys(range(PARTITIONS), 0)
        self._began = self._reported_at = time.monotonic()

    def play(self) -> None:
        """All of the plan, as far as there is time."""
        plan, played = self._played.plan, self._played
        while played.cuts < plan.cuts and time.monotonic() - self._began < plan.minutes * 60:
            time.sleep(self._chance.uniform(*CALM))
            self._cut()
            self._check_watermarks()
            if played.cuts % CHECK_EVERY == 0:
                self._report(f": {self._check_new_records()}")
            elif time.monotonic() - self._reported_at > REPORT_SECONDS:
                self._report()

    def _cut(self) -> None:
        plan, played, load = self._played.plan, self._played, self._load
        every = range(plan.brokers)
        harmed = list(every) if plan.naive else [self._chance.choice(every)]
        self._brokers.cut(harmed)
        began, before, begun = time.monotonic(), load.count(), len(load.transactions.known)
        self._brokers.restart(harmed)
        wait_until(lambda: load.count() > before, "a record to be acknowledged")
        played.cuts += 1
        played.slowest_recovery_s = max(played.slowest_recovery_s, round(time.monotonic() - began, 1))
        deadline = time.monotonic() + TRANSACTION_SECONDS
        while len(load.transactions.known) == begun and time.monotonic() < deadline:
            time.sleep(0.1)

    def _check_watermarks(self) -> None:
        places = self._load.acknowledged().places
        self._played.broken.low_watermarks += check_watermarks(places, self._topics.end_offsets(RECORDS_TOPIC))

    def _report(self, found: str = "") -> None:
        played, self._reported_at = self._played, time.monotonic()
        progress = f"{played.cuts}/{played.plan.cuts} cuts in {self._reported_at - self._began:.0f} s"
        counts = f"{self._load.count():,} records and {len(self._load.transactions.known):,} transactions"
        sys.stderr.write(f"  {progress}, {counts}, slowest recovery {played.slowest_recovery_s} s{found}\n")

    def _check_new_records(self) -> Broken:
        """Of records since the last time. What is found here is found in the end too, and counted then."""
        known, since = self._load.acknowledged(), self._since
        self._since = self._topics.end_offsets(RECORDS_TOPIC)
        log = read_log(self._kafka, RECORDS_TOPIC, since, self._since)
        places = [each for each in known.places if since[each.partition] <= each.offset]
        return check_records(Acknowledged(places, again=self._load.acknowledged().again), log)


def read_log(kafka: KafkaConnection, topic: str, since: dict[int, int], until: dict[int, int]) -> list[Place]:
    """Read what a read_committed reader sees of a topic between offsets, partition by partition."""
    settings = {"group.id": GROUP, "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({**kafka.client(), **settings, "auto.offset.reset": "error", "log_level": 0})
    found = list[Place]()
    try:
        for partition, end in until.items():
            consumer.assign([TopicPartition(topic, partition, since[partition])])
            deadline = time.monotonic() + SETTLE_SECONDS
            while _position(consumer, topic, partition, since[partition]) < end:
                assert time.monotonic() < deadline, f"{topic} {partition} cannot be read to its end, {end}"
                for message in consumer.consume(10_000, 0.2):
                    offset, value = message.offset(), message.value()
                    if message.error() is None and offset is not None and value is not None and offset < end:
                        found.append(Place(partition, offset, value))
                        deadline = time.monotonic() + SETTLE_SECONDS
    finally:
        consumer.close()
    return found


def _position(consumer: Consumer, topic: str, partition: int, since: int) -> int:
    """Where it goes on reading, which may be after the marker of a transaction."""
    (at,) = consumer.position([TopicPartition(topic, partition)])
    return at.offset if at.offset >= 0 else since


def _written(home: Path) -> Iterator[Sequence[Batch]]:
    """The batches of each partition, on each broker."""
    for folder in sorted(home.glob(f"kafka*/data/{RECORDS_TOPIC}-*")):
        yield [batch for segment in sorted(folder.glob("*.log")) for batch in batches_of(segment.read_bytes())]


def _committed_position(kafka: KafkaConnection) -> int:
    consumer = Consumer({**kafka.client(), "group.id": GROUP, "enable.auto.commit": False, "log_level": 0})
    deadline = time.monotonic() + SETTLE_SECONDS
    try:
        while True:
            try:
                (at,) = consumer.committed([TopicPartition(RECORDS_TOPIC, 0)], CALL_SECONDS)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
            else:
                return at.offset if at.offset >= 0 else -1
    finally:
        consumer.close()


def check_everything(
    kafka: KafkaConnection, load: PowerLoad, played: Played, partitions: Iterable[Sequence[Batch]]
) -> None:
    """Nothing is sent any more: read both topics from the start. `partitions`: their batches of records."""
    topics, start = Topics(kafka), dict.fromkeys(range(PARTITIONS), 0)
    deadline = time.monotonic() + SETTLE_SECONDS
    while (ends := topics.committed_ends(ALERTS_TOPIC)) != topics.end_offsets(ALERTS_TOPIC):
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    hanging = sum(end != ends[partition] for partition, end in topics.end_offsets(ALERTS_TOPIC).items())
    values = (each.value.split() for each in read_log(kafka, ALERTS_TOPIC, start, ends))
    visible = [(int(number), int(place)) for number, place in values]
    in_transactions = check_transactions(load.transactions.known, visible, _committed_position(kafka))
    log = read_log(kafka, RECORDS_TOPIC, start, topics.end_offsets(RECORDS_TOPIC))
    low_watermarks = played.broken.low_watermarks
    played.broken = check_records(load.acknowledged(), log) + in_transactions
    played.broken.twice += sum(check_sequences(batches) for batches in partitions)
    played.broken.low_watermarks, played.broken.hanging = low_watermarks, hanging
    outcomes = [each.outcome for each in load.transactions.known.values()]
    played.acknowledged = load.count()
    played.unplaced = sum(each.unplaced for each in load.producers)
    played.unknown = sum(each.unknown for each in load.producers)
    played.replaced = sum(each.broken for each in load.producers)
    played.hung = load.transactions.hung
    played.transactions = outcomes.count(Outcome.COMMITTED)
    played.aborted, played.undecided = outcomes.count(Outcome.ABORTED), outcomes.count(Outcome.UNKNOWN)


def _keep_transactions(home: Path, load: PowerLoad) -> Path:
    """Keep what is known of all transactions, and the logs that have them. Returns the folder."""
    folder = FOLDER / f"power-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    folder.mkdir(parents=True)
    known = {number: (each.size, each.outcome) for number, each in load.transactions.known.items()}
    (folder / "transactions.json").write_text(json.dumps(known), encoding="utf-8")
    for topic in (ALERTS_TOPIC, "__transaction_state", "__consumer_offsets"):
        for log in home.glob(f"kafka*/data/{topic}-*"):
            shutil.copytree(log, folder / log.relative_to(home))
    return folder


def play(plan: Plan, folder: Path) -> Played:
    """Start the brokers, cut their power under load, and check everything at rest."""
    began, played = time.monotonic(), Played(plan)
    settings = settings_for(folder).replace(kafka_brokers=plan.brokers, kafka_partitions=PARTITIONS)
    kafka = settings.kafka.connection
    with powered_brokers(settings, are_synced=not plan.naive) as brokers:
        load = PowerLoad(kafka, plan.seed)
        with load.running():
            wait_until(lambda: load.count() > 0, "a first record to be acknowledged")
            Cuts(brokers, load, kafka, played).play()
        check_everything(kafka, load, played, _written(settings.home))
        if not (played.broken.is_nothing or plan.naive):
            sys.stderr.write(f"  the logs of transactions are kept in {_keep_transactions(settings.home, load)}\n")
    played.seconds = round(time.monotonic() - began, 1)
    return played


def _plan() -> Plan:
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.power", description=__doc__)
    parser.add_argument("--cuts", type=int, default=20, help="of the power")
    parser.add_argument("--brokers", type=int, choices=(ONE, THREE), default=ONE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=Plan.minutes, help="after so many no further cut begins")
    parser.add_argument("--naive", action="store_true", help="without sync, or with three all at once; it must fail")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        parser.error("disks of their own need root and loop devices")
    return Plan(**vars(arguments))


def main() -> int:
    """Exit 1 if an invariant is broken."""
    plan = _plan()
    exit_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="galatea-power-") as folder:
        played = play(plan, Path(folder))
    line = json.dumps({"at": f"{datetime.now(UTC):%F}", **played.summary()})
    sys.stdout.write(line + "\n")
    sys.stderr.write(f"  {played.broken}\n")
    append("power", line)
    return int(not played.is_well)


if __name__ == "__main__":
    sys.exit(main())
