"""Totals of a chain while events arrive and publications switch: total = sum of stores = recompute, to the digit.

The recompute reads the topic itself, and adds up what it finds by the rules for humans: first delivery, business day,
group of that day. Every sample asks for a total (or groups) and for the same stores one by one, as of an epoch that
both layers have closed; answers are read from Cassandra each time, while both layers go on. The stack has epochs of ten
seconds: with those of one second, an answer would add up many more speed rows.

`test_ten_thousand_samples_of_a_live_chain_are_exact` takes many samples. The other test takes a few, and kills speed.
"""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
import yaml
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from batch_layer.verify.totals import business_day, group_of
from deploy.batch import context_of, verification_of
from deploy.cassandra import session_of
from deploy.wiring import readers_of
from master_dataset.registry.registry import Registry
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.epoch_answers import EpochAnswers
from serving_layer.query.resolve import MetricRequest
from tests.integration.conftest import Stack, settings_of, started
from tests.integration.test_killed_speed import kill_speed
from views.control.publication import Pointer
from views.core.cut import seconds
from views.core.local_time import round_down
from views.metrics import registered_metrics
from views.registry import registered_views

if TYPE_CHECKING:
    from pathlib import Path

TODAY = datetime.now(UTC).replace(microsecond=0)
FIRST, LAST = TODAY.date() - timedelta(days=4), TODAY.date() + timedelta(days=2)
CHANGES = TODAY.date() - timedelta(days=1)
CHAIN: Sequence[Mapping[str, Any]] = (
    {"id": "live-1", "timezone": "Europe/Bratislava", "groups": {"chain": "live", "region": "West"}},
    {"id": "live-2", "timezone": "America/New_York", "day_starts_at": "04:00", "groups": {"chain": "live"}},
    {
        "id": "live-3",
        "timezone": "Asia/Tokyo",
        "groups": [
            {"valid_from": f"{FIRST - timedelta(days=9)}", "chain": "live", "region": "West"},
            {"valid_from": f"{CHANGES}", "chain": "live", "region": "East"},
        ],
    },
    {"id": "live-4", "timezone": "UTC", "currency": "CZK", "groups": {"chain": "live", "region": "East"}},
)
IDS = tuple(store["id"] for store in CHAIN)
METRICS = ("net_sales", "total_transactions_count", "avg_transaction_value")
CATALOGUE = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
DECODER = msgspec.json.Decoder(float_hook=Decimal)


class Receipt(NamedTuple):
    """The first delivery of a receipt. `is_waiting`: too old for the speed layer when it came."""

    store: str
    happened_at: datetime
    received_at: datetime
    minor: int
    is_waiting: bool


class Question(NamedTuple):
    """What is sampled. `by`: `total`, or a group."""

    metric: str
    by: str
    grain: str
    first: date
    last: date


ROUNDS_OF_ONE = 8
"""How many rounds are answered from one publication at most; then the next one is awaited."""
AT_ONCE = 25
"""Questions that are asked side by side."""
Key = tuple[str | None, str | None, str]
"""Value of the group, currency, and label of a point: its date, or nothing."""


@dataclass
class Found:
    """`samples` compared, what `differed`, and the publications that they were of."""

    samples: int = 0
    differed: list[str] = field(default_factory=list)
    publications: set[int] = field(default_factory=set)
    receipts: list[int] = field(default_factory=list)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with started(*settings_of(tmp_path_factory.mktemp("live") / "home", GALATEA_EPOCH_SECONDS="10")) as found:
        yield found


@pytest.fixture(scope="module")
def stores(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Store]:
    """The chain, registered."""
    file: Path = tmp_path_factory.mktemp("chain") / "stores.yaml"
    file.write_text(yaml.safe_dump({"stores": list(CHAIN)}))
    stack.run("stores", "load", str(file))
    known = Registry(session_of(stack.settings.cassandra.address)).stores()
    return {id_: known[id_] for id_ in IDS}


@contextmanager
def selling(stack: Stack, seed: int, per_second: float) -> Iterator[None]:
    """Receipts of today, some days late, some returns, some sent twice, until this ends."""
    chance, stop = Random(seed), threading.Event()
    producer = Producer({**stack.settings.kafka.connection.client(), "enable.idempotence": True})

    def run() -> None:
        number = seed * 1_000_000
        while not stop.wait(1 / per_second):
            number += 1
            value, store = _receipt(chance, number), chance.choice(IDS)
            for _ in range(2 if chance.random() < 0.1 else 1):
                producer.produce(POS_TRANSACTIONS.topic, value(store), store, partition=0)
            producer.poll(0)

    sender = threading.Thread(target=run)
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join()
        assert producer.flush(60) == 0


def _receipt(chance: Random, number: int) -> Callable[[str], bytes]:
    age = timedelta(days=chance.uniform(1, 3)) if chance.random() < 0.2 else timedelta(hours=chance.uniform(0, 20))
    minor = chance.choice((-1, 1, 1, 1)) * chance.randint(1, 9999)
    line = {"title": "thing", "price": abs(minor) / 100, "amount": 1 if minor > 0 else -1, "sku": "1"}
    happened_at = (datetime.now(UTC) - age).isoformat(timespec="milliseconds")

    def value(store: str) -> bytes:
        fields = {"happened_at": happened_at, "operation_id": store, "transaction_id": number}
        return json.dumps({**fields, "vendor_fiscal_module": 1, "transactions": [line]}).encode()

    return value


@contextmanager
def publishing(stack: Stack, pause: float) -> Iterator[None]:
    """One publication after another, until this ends."""
    stop, failed = threading.Event(), []

    def run() -> None:
        try:
            while not stop.is_set():
                stack.rebuild()
                stop.wait(pause)
        except Exception as error:  # noqa: BLE001 - raised below, in the thread of the test
            failed.append(error)

    publisher = threading.Thread(target=run)
    publisher.start()
    try:
        yield
    finally:
        stop.set()
        publisher.join()
    if failed:
        raise failed[0]


def delivered(stack: Stack) -> Iterator[tuple[int, bytes]]:
    """The deliveries of the chain in the topic, in order: the broker's stamp in milliseconds, and the value.

    As far as the topic reaches when this begins: while receipts arrive, a consumer may never see its end. It sees it if
    the last record is the marker of a transaction, which is not delivered.
    """
    settings = {**stack.settings.kafka.connection.client(), "group.id": "nobody", "enable.partition.eof": True}
    consumer = Consumer(settings)
    partition = TopicPartition(POS_TRANSACTIONS.topic, 0, 0)
    try:
        first, end = consumer.get_watermark_offsets(partition, timeout=60)
        consumer.assign([partition])
        after = first
        while after < end:
            for message in consumer.consume(1000, timeout=1):
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001 - its public name
                    return
                after = (message.offset() or 0) + 1
                if after <= end and (message.key() or b"").decode() in IDS:
                    yield message.timestamp()[1], message.value() or b""
    finally:
        consumer.close()


def sent_before(stack: Stack, epoch: datetime, pointer: Pointer) -> list[Receipt]:
    """The chain's receipts in the topic that count: first deliveries, without those that wait for batch."""
    oldest = context_of(stack.settings).oldest
    found: dict[str, Receipt] = {}
    for stamp, value in delivered(stack):
        body, received_at = json.loads(value), datetime.fromtimestamp(stamp / 1000, UTC)
        if received_at >= epoch:
            continue
        happened_at = datetime.fromisoformat(body["happened_at"])
        [line] = body["transactions"]
        minor = round(line["price"] * line["amount"] * 100)
        waits = received_at >= pointer.cut and received_at - happened_at > oldest
        receipt = Receipt(body["operation_id"], happened_at, received_at, minor, waits)
        found.setdefault(body["transaction_id"], receipt)
    return [receipt for receipt in found.values() if not receipt.is_waiting]


def daily(stores: Mapping[str, Store], receipts: Sequence[Receipt]) -> dict[tuple[str, date], list[int]]:
    """Receipts added up by store and business day: minor units, how many, and how many that are no returns."""
    found: dict[tuple[str, date], list[int]] = {}
    for each in receipts:
        day = business_day(stores[each.store], round_down(seconds(each.happened_at)))
        own = found.setdefault((each.store, day), [0, 0, 0])
        own[0] += each.minor
        own[1] += 1
        own[2] += each.minor > 0
    return found


def recomputed(
    stores: Mapping[str, Store], days: Mapping[tuple[str, date], Sequence[int]], asked: Question
) -> dict[Key, Decimal]:
    """The values of a question, from what was added up by store and day."""
    sums: dict[Key, list[int]] = {}
    name = asked.by.removeprefix("group:")
    for (id_, day), added in days.items():
        store = stores[id_]
        if asked.first <= day < asked.last:
            group = None if asked.by == "total" else group_of(store, name, day)
            code = None if asked.metric == "total_transactions_count" else store.currency.code
            own = sums.setdefault((group, code, str(day) if asked.grain == "day" else ""), [0, 0, 0])
            own[:] = (one + more for one, more in zip(own, added, strict=True))
    found = {key: _value(asked.metric, *own) for key, own in sums.items()}
    return {key: value for key, value in found.items() if value}


def _value(metric: str, minor: int, receipts: int, sold: int) -> Decimal:
    """`sold`: how many of the receipts are no returns."""
    if metric == "net_sales":
        return Decimal(minor) / 100
    if metric == "total_transactions_count":
        return Decimal(receipts)
    return Decimal(repr(minor / 100 / sold)) if sold else Decimal(0)


def shown(body: Mapping[str, Any], asked: Question) -> dict[Key, Decimal]:
    """The values of an answer about groups; of equal keys the sum, for answers that have a series per store."""
    found: dict[Key, Decimal] = {}
    for series in body["series"]:
        [group] = series.get("group", {}).values() or [None]
        code = series["dimensions"].get("currency") or series.get("currency") or body.get("currency")
        for point in series["points"]:
            key = group, code, point["date"] if asked.grain == "day" else ""
            found[key] = found.get(key, Decimal(0)) + (point["value"] or 0)
    return {key: Decimal(value) for key, value in found.items() if value}


def is_equal(one: Mapping[Key, Decimal], other: Mapping[Key, Decimal], asked: Question) -> bool:
    """To the digit; an average to the last digits of a double."""
    if asked.metric != "avg_transaction_value":
        return one == other
    return one.keys() == other.keys() and all(abs(one[key] - other[key]) < Decimal("1e-9") for key in one)


def drawn(chance: Random) -> Question:
    days = sorted(chance.sample(range((LAST - FIRST).days + 1), 2))
    first, last = (FIRST + timedelta(days=day) for day in days)
    grain, by = chance.choice(("day", "total")), chance.choice(("total", "group:region", "group:chain"))
    return Question(chance.choice(METRICS), by, grain, first, last)


async def _answered(
    ask: Callable[..., Awaitable[dict[Key, Decimal]]], questions: Sequence[Question]
) -> tuple[list[dict[Key, Decimal]], list[dict[Key, Decimal] | None]]:
    """The answers, and where values can be added up, those of the stores one by one. Asked side by side."""

    async def added(asked: Question) -> dict[Key, Decimal] | None:
        if asked.by != "total" or asked.metric == "avg_transaction_value":
            return None
        return await ask(asked, "store", *(("currency",) if asked.metric == "net_sales" else ()))

    totals = await asyncio.gather(*(ask(asked, asked.by) for asked in questions))
    return totals, await asyncio.gather(*map(added, questions))


def sampled(  # noqa: PLR0913 - what a run is
    stack: Stack, stores: Mapping[str, Store], *, rounds: int, samples: int, seed: int, kill_after: int = -1
) -> Found:
    """Take so many samples in each of several rounds, each as of an epoch of its own.

    `kill_after`: the round after which the speed layer is killed.
    """
    found, chance, verification = Found(), Random(seed), verification_of(stack.settings)
    readers, ttl = readers_of(stack.settings), stack.settings.speed.ttl
    of_one = Counter[int]()
    with asyncio.Runner() as runner:
        while len(found.receipts) < rounds or len(found.publications) < 2:
            epoch, pointer = verification.closed()
            if of_one[pointer.publication] == ROUNDS_OF_ONE:  # a rebuild beside samples takes minutes
                time.sleep(1)
                continue
            of_one[pointer.publication] += 1
            receipts = sent_before(stack, epoch, pointer)
            days = daily(stores, receipts)
            answers = runner.run(EpochAnswers.at(readers, CATALOGUE, ttl, pointer, epoch))
            found.publications.add(pointer.publication)
            found.receipts.append(len(receipts))

            async def ask(asked: Question, *by: str, answers: EpochAnswers = answers) -> dict[Key, Decimal]:
                bounds = str(asked.first), str(asked.last)
                request = MetricRequest(asked.metric, IDS, *bounds, grain=asked.grain, by=by)  # type: ignore[arg-type]
                return shown(DECODER.decode(await answers.ask(request, stores)), asked)

            questions = [drawn(chance) for _ in range(samples)]
            for place in range(0, samples, AT_ONCE):
                some = questions[place : place + AT_ONCE]
                totals, sums = runner.run(_answered(ask, some))
                for asked, total, added in zip(some, totals, sums, strict=True):
                    due = recomputed(stores, days, asked)
                    found.samples += 1
                    if not is_equal(total, due, asked):
                        found.differed.append(f"{asked}: {total} instead of {due}")
                    if added is not None and added != total:
                        found.differed.append(f"{asked}: {total}, but {added} added up over stores")
            round_ = f"round {len(found.receipts)}: {found.samples} samples, {len(found.differed)} differences"
            print(round_, flush=True)  # noqa: T201
            if len(found.receipts) == kill_after:
                kill_speed(stack)
    return found


def report(found: Found, seconds_: float) -> None:
    """What the run was; pytest shows it with `-s`, and where a test fails."""
    receipts = f"{found.receipts[0]} to {found.receipts[-1]} receipts, publications {sorted(found.publications)}"
    print(f"{found.samples} samples, {len(found.differed)} differences, {receipts}, {seconds_:.0f} s")  # noqa: T201


@pytest.mark.nightly
def test_totals_of_a_chain_are_exact_while_events_arrive_publications_switch_and_speed_is_killed(
    stack: Stack, stores: Mapping[str, Store]
) -> None:
    began = time.monotonic()
    with selling(stack, 1, per_second=20), publishing(stack, pause=1):
        found = sampled(stack, stores, rounds=4, samples=40, seed=1, kill_after=2)
    report(found, time.monotonic() - began)

    assert found.differed == []
    assert len(found.publications) >= 2
    assert found.receipts[0] < found.receipts[-1]


@pytest.mark.nightly
@pytest.mark.timeout(3 * 3600)
def test_ten_thousand_samples_of_a_live_chain_are_exact(stack: Stack, stores: Mapping[str, Store]) -> None:
    began = time.monotonic()
    with selling(stack, 2, per_second=5), publishing(stack, pause=1):
        found = sampled(stack, stores, rounds=50, samples=200, seed=2)
    report(found, time.monotonic() - began)
    verdict = stack.verify()

    assert found.differed == []
    assert found.samples >= 10_000
    assert len(found.publications) >= 5
    assert (verdict.differing, verdict.totals_differing, verdict.examples) == (0, 0, [])
    assert verdict.totals
