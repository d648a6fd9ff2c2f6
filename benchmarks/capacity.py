"""Events per second that the speed layer counts with a backlog, compared with a bare consumer and Quix Streams.

All read the same receipts of one topic, one after another, each with nothing else running than what it needs. Ours
ends in Cassandra, where the serving layer reads it, and also writes every raw receipt. The bare consumer drops what it
has parsed, and Quix Streams keeps its sums in a local state store.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks import local, traffic
from benchmarks.local import steps
from benchmarks.processor import Meter, Pace
from benchmarks.report import Measured
from deploy.local.records import Records
from master_dataset.kafka.ingest import ingest
from master_dataset.kafka.topics import Topics
from master_dataset.parsing.parse import parse
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views import view_named
from views.core.cells import read_block

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 200_000
AT_LEAST_OF_BARE, AT_LEAST_OF_QUIX = 0.2, 3.0
TOPIC = POS_TRANSACTIONS.topic
HERE = Path(__file__).parent
COMPARED = ("sales", "sales_by_sku", "sales_by_till")
"""The views that Quix Streams computes too; the speed layer computes all views of receipts."""
Totals = dict[str, int]
"""The sums and the number of the cells of `COMPARED`, which both systems must agree on."""


def capacity(size: int) -> Iterator[Measured]:
    """`size` receipts and a tenth of them again. RuntimeError if Quix Streams counted something else than we did."""
    with local.own_home() as settings:
        with local.running(settings, "kafka"):
            ingest(POS_TRANSACTIONS, traffic.receipt_backlog(size), settings.kafka.connection, lambda _result: None)
            parsed = _bare(settings, lambda value: parse(POS_TRANSACTIONS, value, lambda _store: DEFAULT_TERMS))
            decoded = _bare(settings, msgspec.json.decode)
            quix, theirs = _quix(settings)
        with local.running(settings, "kafka", "cassandra", "speed"):
            ours, profile = counted_pace(settings)
            counted = _totals(settings)
    if counted != theirs:
        raise RuntimeError(f"Quix Streams counted {theirs} and we counted {counted}")
    details = {
        "events": quix.events,
        **counted,
        "seconds": round(ours.seconds, 1),
        "events_timed": ours.events,
        **profile,
    }
    yield from _both("bare consumer, our parser", ours, parsed, AT_LEAST_OF_BARE, details)
    yield from _both("bare consumer, msgspec only", ours, decoded, None, {})
    yield from _both("Quix Streams 3.28", ours, quix, AT_LEAST_OF_QUIX, {})


def _both(
    name: str, ours: Pace, beside: Pace, limit: float | None, details: Mapping[str, object]
) -> Iterator[Measured]:
    second = (ours.per_second, beside.per_second)
    core = (ours.per_core_second, beside.per_core_second)
    yield Measured("capacity", *second, "events/s", name, limit=limit, details=details)
    yield Measured("capacity of a core", *core, "events/core-s", name, limit=limit)


def _bare(settings: "Settings", read: Callable[[bytes], object]) -> Pace:
    """From the first record that arrives to the last one, each made into Python objects."""
    ends = Topics(settings.kafka.connection).end_offsets(TOPIC)
    consumer = Consumer({**settings.kafka.connection.client(), "group.id": "bench-bare"})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
    left = sum(ends.values())
    began = spent = 0.0
    while left:
        messages = consumer.consume(500, 1.0)
        if messages and not began:
            began, spent = time.monotonic(), time.process_time()
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            read(message.value() or b"")
        left -= len(messages)
    pace = Pace(sum(ends.values()), time.monotonic() - began, time.process_time() - spent)
    consumer.close()
    return pace


def _quix(settings: "Settings") -> tuple[Pace, Totals]:
    """In an environment of its own: it wants older clients of Kafka and settings than ours."""
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise RuntimeError("Quix Streams is installed by uv: start this by `make bench`, which has one")
    events = local.received(settings)
    environment = ["--no-project", "--isolated", "--python", sys.executable]
    packages = ["--with-requirements", str(HERE / "quix_streams.txt")]
    arguments = [settings.kafka.bootstrap, TOPIC, str(events), str(settings.home / "quix")]
    command = [uv, "run", *environment, *packages, "python", str(HERE / "quix_streams.py"), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    if found["events"] != events:
        raise RuntimeError(f"Quix Streams read {found['events']} of {events} events")
    return Pace(events, found["seconds"], found["cpu_seconds"]), found["totals"]


def counted_pace(settings: "Settings", workers: Sequence[int] = ()) -> tuple[Pace, dict[str, object]]:
    """From the end of the first micro-batch, in which Java warms up, to that of the last, by the positions recorded.

    Also where the time went: the steps of a micro-batch, and processor time per event of each process that took part.

    Args:
        settings: of the running stack.
        workers: the processes of a Spark cluster, if the executors of the speed layer are theirs.
    """
    total = local.received(settings)
    records = Records(settings.home)
    pids = {name: records.pid(name) for name in ("speed", "cassandra", "kafka")}
    pids |= {f"worker {number}": pid for number, pid in enumerate(workers)}
    with ExitStack() as stack:
        meters = {name: stack.enter_context(Meter(pid)) for name, pid in pids.items()}
        began_at, before, began = time.monotonic(), _spent(meters), 0
        local.until(lambda: local.counted(settings) > 0, "the first micro-batch")
        if (first := local.counted(settings)) < total:
            began_at, before, began = time.monotonic(), _spent(meters), first
        local.until(lambda: local.counted(settings) >= total, "the speed layer")
        seconds = time.monotonic() - began_at
        used = {name: after - before[name] for name, after in _spent(meters).items()}
    pace = Pace(total - began, seconds, used["speed java"] + used["speed python"])
    each = {name: round(1000 * spent / pace.events, 3) for name, spent in used.items()}
    return pace, {"core_ms_per_event": each, "micro_batch_ms": steps(settings.home / "logs" / "speed.log", 100)}


def _spent(meters: Mapping[str, Meter]) -> dict[str, float]:
    of_speed = [meter.by_program() for name, meter in meters.items() if name not in ("cassandra", "kafka")]
    speed = {f"speed {program}": sum(each[program] for each in of_speed) for program in ("java", "python")}
    return speed | {name: meters[name].seconds for name in ("cassandra", "kafka")}


def _totals(settings: "Settings") -> Totals:
    found: Totals = {}
    distinct = set()
    session = local.cassandra(settings)
    for row in session.execute(f"SELECT view_name, store, block FROM {local.layout(session).cells}"):  # noqa: S608 - our own name
        if row.view_name not in COMPARED:
            continue
        view = view_named(row.view_name)
        for key, states in read_block(view, row.block):
            distinct.add((row.view_name, row.store, key))
            for name, value in zip(view.columns, states, strict=True):
                place = f"{row.view_name}.{name}"
                found[place] = found.get(place, 0) + (value if isinstance(value, int) else 0)
    sums = {name: found[f"sales.{name}"] for name in ("receipts", "gross_sales", "units_sold")}
    return {**sums, "net_units": found["sales_by_sku.net_units"], "cells": len(distinct)}
