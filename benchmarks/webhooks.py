"""Alerts per second to a receiver that takes 50 ms, in order for each store, compared with calls without a pause."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import orjson
import psutil
from confluent_kafka import Producer

from benchmarks import local
from benchmarks.constant_server import listens
from benchmarks.dispatcher_process import TENANT
from benchmarks.report import Measured
from deploy.local.ports import free_ports
from master_dataset.kafka.client_settings import producer_settings
from views.alerts.alert import Alert, Window, raised_id

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 1_600
SECONDS, KEY_QUEUES, BATCH = 0.05, 8, 100
SHARE = 0.8
"""At least so much of what calls without a pause between them would reach, where each holds one alert.

Growing calls are over in a second or two, so that how quickly records come from the broker says as much as we do.
"""
KILLS = 6


class Call(NamedTuple):
    """One that was answered."""

    came: float
    answered: float
    key: str
    delivered: Sequence[Sequence[object]]


def webhooks(size: int) -> Iterator[Measured]:
    """`size` alerts in all, of one store and of eight; each alone in its call, and as many as the pace allows."""
    with local.own_home() as settings, local.running(settings, "kafka"):
        for stores, batch in ((1, 1), (1, BATCH), (KEY_QUEUES, 1), (KEY_QUEUES, BATCH)):
            number = size // 8 if stores * batch == 1 else size
            yield _measured(settings, number // stores, stores, batch)
        yield _killed(settings, size // KEY_QUEUES)


def _measured(settings: "Settings", each: int, stores: int, batch: int) -> Measured:
    with _receiving(settings, stores, each) as (bench, topic, url):
        with _delivering(settings, topic, url, uuid4().hex, batch) as pid:
            local.until(
                lambda: sum(len(call.delivered) for call in bench.calls()) >= each * stores, "the last alert", 0.5
            )
            times = psutil.Process(pid).cpu_times()
        calls = bench.calls()
    _in_order(calls, each)
    took = max(call.answered for call in calls) - min(call.came for call in calls)
    ideal = each * stores / (_fewest(each, batch) * SECONDS)
    what = "one store" if stores == 1 else f"{stores} stores"
    size = "an alert a call" if batch == 1 else f"up to {batch} a call"
    details = {
        "alerts": each * stores,
        "calls": len(calls),
        "fewest_calls": _fewest(each, batch) * stores,
        "receiver_ms": round(1000 * mean(call.answered - call.came for call in calls), 1),
        # The start of the process is in it.
        "core_ms_a_call": round(1000 * (times.user + times.system) / len(calls), 2),
    }
    beside = f"calls of {SECONDS * 1000:g} ms, one after the other for each store"
    name = f"webhooks, {what}, {size}"
    return Measured(
        name, each * stores / took, ideal, "alerts/s", beside, limit=SHARE if batch == 1 else None, details=details
    )


def _killed(settings: "Settings", each: int) -> Measured:
    """Killed as by `kill -9` again and again. Nothing is lost and all is in order, or the run ends."""
    chance, id_ = random.Random(7), uuid4().hex  # noqa: S311 - seeded chance, no secrets
    with _receiving(settings, KEY_QUEUES, each) as (bench, topic, url):
        for _ in range(KILLS):
            before = len(bench.calls())
            with _delivering(settings, topic, url, id_, 1):
                local.until(lambda before=before: len(bench.calls()) > before, "a call")  # type: ignore[misc]
                time.sleep(chance.uniform(0.0, 2.0))
        with _delivering(settings, topic, url, id_, BATCH):
            local.until(lambda: len(_ids(bench.calls())) == each * KEY_QUEUES, "the last alert", 0.5)
        calls = bench.calls()
    _in_order(calls, each)
    delivered = sum(len(call.delivered) for call in calls)
    all_ = each * KEY_QUEUES
    details = {"kills": KILLS, "lost": all_ - len(_ids(calls)), "out_of_order": 0, "came_again": delivered - all_}
    once = f"once by id, after {KILLS} kills"
    return Measured("webhooks, killed", delivered, all_, "alerts", once, better="low", details=details)


def _ids(calls: Sequence[Call]) -> set[object]:
    return {id_ for call in calls for _, _, id_ in call.delivered}


def _fewest(alerts: int, batch: int) -> int:
    """Calls of one store, if each may hold twice as many as the one before."""
    calls, size = 0, 1
    while alerts > 0:
        calls, alerts, size = calls + 1, alerts - size, min(batch, size * 2)
    return calls


def _in_order(calls: Sequence[Call], each: int) -> None:
    """RuntimeError if an alert of a store came for the first time before an earlier one, or never."""
    firsts: dict[object, dict[object, None]] = {}
    for call in sorted(calls, key=lambda one: one.came):
        for store, number, _ in call.delivered:
            firsts.setdefault(store, {})[number] = None  # a repeated key keeps its first position
    if wrong := [store for store, numbers in firsts.items() if list(numbers) != list(range(each))]:
        raise RuntimeError(f"stores {wrong} did not get their alerts in order")


class _Kept(NamedTuple):
    file: Path

    def calls(self) -> list[Call]:
        """Those that were answered so far."""
        lines = self.file.read_bytes().splitlines(keepends=True) if self.file.exists() else []
        return [Call(*orjson.loads(line)) for line in lines if line.endswith(b"\n")]


@contextmanager
def _receiving(settings: "Settings", stores: int, each: int) -> Iterator[tuple[_Kept, str, str]]:
    """A topic with that many alerts of so many stores, and a receiver."""
    topic, file = f"alerts_{uuid4().hex[:8]}", settings.home / f"{uuid4().hex}.jsonl"
    local.new_topic(settings, topic)
    producer = Producer(producer_settings(settings.kafka.connection, "benchmark", 30))
    for number in range(each):
        for store in range(stores):
            producer.produce(topic, _alert(str(store), number).to_json(), key=str(store))
        producer.poll(0)
    producer.flush(60)
    [port] = free_ports(1)
    words = [sys.executable, "-m", "benchmarks.slow_receiver", str(port), str(SECONDS), str(file)]
    with _child(words):
        local.until(lambda: listens(port), "the receiver")
        yield _Kept(file), topic, f"http://127.0.0.1:{port}/"


def _delivering(settings: "Settings", topic: str, url: str, id_: str, batch: int) -> AbstractContextManager[int]:
    words = [settings.kafka.bootstrap, topic, url, id_, str(batch)]
    return _child([sys.executable, "-m", "benchmarks.dispatcher_process", *words])


@contextmanager
def _child(words: Sequence[str]) -> Iterator[int]:
    """Its pid; ended as by `kill -9`."""
    child = subprocess.Popen(words)
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def _alert(store: str, number: int) -> Alert:
    window = Window(f"2026-11-22T09:{number // 60_000:02}:{number // 1000 % 60:02}.{number % 1000:03}Z")
    return Alert(
        alert_id=raised_id("queue", 1, (TENANT, store), window, {}),
        kind="raised",
        rule="queue",
        version=1,
        tenant=TENANT,
        store=store,
        window=window,
        dimensions={},
        value=Decimal(number),
        threshold=Decimal(4),
        sentence="More than 4 wait.",
        raised_at="2026-11-22T09:00:00.000Z",
    )
