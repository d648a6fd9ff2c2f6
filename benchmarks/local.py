"""The local stack of the benchmarks: a home and ports of its own, and what its logs and tables say."""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import TYPE_CHECKING

from deploy.cassandra import session_of
from deploy.jars import ensure_jars
from deploy.local.ports import free_ports
from deploy.local.stack import Stack
from deploy.settings import Settings
from master_dataset.kafka.topics import Topics, TopicSettings
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.control.generation import Generations
from views.control.speed_layout import SpeedLayout, layout_of

if TYPE_CHECKING:
    from cassandra.cluster import Session

PATIENCE_SECONDS = 1800.0


@contextmanager
def own_home(**more: str) -> Iterator[Settings]:
    """Settings of a fresh home, removed in the end, as the variables are. `more`: further ones."""
    before = dict(os.environ)
    home = Path(tempfile.mkdtemp(prefix="galatea-bench-"))
    api, sql, kafka, cassandra = free_ports(4)
    os.environ |= {
        "GALATEA_HOME": str(home),
        "GALATEA_API_PORT": str(api),
        "GALATEA_SQL_PORT": str(sql),
        "GALATEA_KAFKA_PORT": str(kafka),
        "GALATEA_CASSANDRA_PORT": str(cassandra),
        "GALATEA_EPOCH_SECONDS": "10",
        "GALATEA_SKEW_SECONDS": "1",
        "GALATEA_PROMPT_CORRECTION": "false",
        "GALATEA_MASTER_URI": "",
        "GALATEA_CHECKPOINT_URI": "",
        **more,
    }
    settings = Settings()
    ensure_jars(settings)
    try:
        yield settings
    finally:
        rmtree(home, ignore_errors=True)
        os.environ.clear()
        os.environ.update(before)


def running(settings: Settings, *names: str) -> Stack:
    """The components of these names, or all of them."""
    session_of.cache_clear()  # its session belongs to the previous stack
    return Stack(settings, only=names)


def cassandra(settings: Settings) -> "Session":
    """The session of this process."""
    return session_of(settings.cassandra.address)


def connecting(settings: Settings) -> "Callable[[], Session]":
    """The same for code that opens its own connection."""
    return partial(session_of, settings.cassandra.address)


def new_topic(settings: Settings, name: str) -> None:
    """A topic like those of the sources."""
    retention_ms = int(settings.kafka.retention.total_seconds() * 1000)
    Topics(settings.kafka.connection).create([name], TopicSettings(settings.kafka.partitions, 1, retention_ms))


def received(settings: Settings) -> int:
    """How many receipts the broker has."""
    return sum(Topics(settings.kafka.connection).end_offsets(POS_TRANSACTIONS.topic).values())


def counted(settings: Settings) -> int:
    """How many of them the newest generation of the speed layer has counted."""
    generations = Generations(cassandra(settings))
    return sum(generations.positions(generations.greatest()).get(POS_TRANSACTIONS.topic, {}).values())


def layout(session: "Session") -> SpeedLayout:
    """Where the newest generation of the speed layer has its rows."""
    return layout_of(session, Generations(session).greatest())


def until(done: Callable[[], bool], what: str, every: float = 0.1) -> None:
    """Wait for it. TimeoutError, which names it, if it never comes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(every)


STEPS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")


def steps(log: Path, at_most: int) -> dict[str, float]:
    """Of the last ones: the median of each step in ms."""
    logged = [line for line in log.read_text().splitlines() if "event=speed.batch" in line][-at_most:]
    found = {step: [int(taken) for line in logged for taken in re.findall(rf"\b{step}=(\d+)", line)] for step in STEPS}
    return {step: median(taken) for step, taken in found.items() if taken}
