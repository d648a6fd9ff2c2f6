"""The stack of a drill: running under load, with a journal of what was sent and a check of what it returns at rest."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx
import pyarrow.compute as pc

from deploy.jars import ensure_jars
from deploy.local.nodes import nodes_of
from deploy.local.stack import Stack as Running
from deploy.settings import Settings
from master_dataset.delta.dataset import arrow_dataset
from master_dataset.errors import OperatorError
from master_dataset.storage import open_table
from tests.integration.conftest import Stack, around_now, secured, settings_of
from tests.support.object_stores import object_store_for_stacks
from tests.system.drills.faults import Faults, wait_until
from tests.system.drills.history import History, Operation, micros
from tests.system.drills.host_faults import Disk, disks
from tests.system.drills.ledger_line import FOLDER
from tests.system.drills.load import Load, Mix
from tests.system.drills.receipts import STORES
from tests.system.drills.sampler import METRIC, Sampler
from tests.system.drills.till_roll import Due, TillRoll
from views.core.cut import UNIX_EPOCH

ON_OBJECT_STORE = "DRILLS_ON_OBJECT_STORE"
HISTORIES = FOLDER / "histories"
COMPONENTS = ("kafka", "cassandra", "archive", "speed", "api")
STARTS = 3
REST_SECONDS = 900.0
"""So long a stack may count nothing more before it has counted all that was sent: after that it hangs."""


class Topology(NamedTuple):
    """How many brokers a stack has. `disks`: the folders of its home that get a file system of their own.

    `settings`: variables of its environment besides those of every drill.
    """

    brokers: int = 1
    disks: Sequence[str] = ()
    settings: Mapping[str, str] = MappingProxyType({})


ONE_NODE = Topology()


class Reading(NamedTuple):
    """An answer over all stores while nothing is sent.

    `name`: of a field of `Due`; `value`: None if there was no answer; `cut_us`: since 1970.
    """

    name: str
    value: int | None
    waiting: int
    cut_us: int


@dataclass
class DrillStack:
    """`stack` is a stack as users meet it. `said`: what goes wrong, in words; nothing does where it is empty.

    `history`: see `check_history`.

    `disks`: of the folders of the home that have one of their own.
    """

    stack: Stack
    faults: Faults
    load: Load
    roll: TillRoll
    sampler: Sampler
    history: History
    said: list[str] = field(default_factory=list)
    disks: Mapping[str, Disk] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """Of the stack."""
        return self.stack.settings

    def galatea(self, *words: str, crash_at: str = "") -> subprocess.CompletedProcess[str]:
        """A command, to its end or its failpoint."""
        environment = {**self.stack.environment, "GALATEA_CRASH_AT": crash_at}
        return _done([sys.executable, "-m", "galatea.cli.main", *words], environment)

    def rebuild(self, crash_at: str) -> str:
        """How one ended that was to end there."""
        return self._ended("galatea rebuild", self.galatea("rebuild", crash_at=crash_at))

    def look(self) -> None:
        """At rest an answer says what was acknowledged, to the cent, but for what waits; and counts that."""
        self.load.rest()
        wait_until(self.faults.all_run, "every component to be back")
        deadline, counted = time.monotonic() + REST_SECONDS, 0
        while True:
            readings, found = self._read()
            now_counted = max((each.waiting + (each.value or 0) for each in readings[:1]), default=0)
            if now_counted > counted:
                deadline, counted = time.monotonic() + REST_SECONDS, now_counted
            is_last = not found or time.monotonic() > deadline
            for each in readings or [Reading("receipts", None, 0, 0)] * is_last:
                self.history.add(Operation.REST, **each._asdict(), is_last=is_last)
            if is_last:
                break
            time.sleep(0.3)
        if found:
            self.said.append(f"at rest: {found}")

    def leave(self) -> None:
        """Send and ask nothing any more, and end the history."""
        self.load.leave()
        self.sampler.leave()
        self.history.close()

    def _read(self) -> tuple[list[Reading], str]:
        """What is answered, and how it differs from what was acknowledged; empty if it does not."""
        try:
            readings = [self._reading("receipts", METRIC, 1), self._reading("minor", "net_sales", 100)]
        except (httpx.TransportError, AssertionError) as error:
            return [], f"no answer: {type(error).__name__} {error}"[:300]
        return readings, self._differs(readings)

    def _differs(self, readings: Sequence[Reading]) -> str:
        for name, value, waiting, cut_us in readings:
            due: Due = self.roll.due(UNIX_EPOCH + timedelta(microseconds=cut_us))
            if (value, waiting) != (getattr(due, name), due.waiting):
                must = f"{getattr(due, name)} and {due.waiting}"
                return f"{name} {value} and {waiting} wait, instead of {must}, cut {cut_us}"
        return ""

    def _reading(self, name: str, metric: str, times: int) -> Reading:
        body = self.stack.get(f"/v1/metrics/{metric}", store=STORES, grain="total", timezone="UTC", **around_now())
        value = sum(point["value"] or 0 for series in body["series"] for point in series["points"])
        as_of = body["as_of"]
        cut_us = micros(datetime.fromisoformat(as_of["cut"]))
        return Reading(name, round(value * times), as_of["waiting_for_batch"], cut_us)

    def receipts(self, stores: Sequence[str]) -> int:
        """How many are shown of these stores; -1 while that is refused."""
        parameters = {"store": list(stores), "grain": "total", "timezone": "UTC", **around_now()}
        try:
            series = self.stack.get(f"/v1/metrics/{METRIC}", **parameters)["series"]
        except (httpx.TransportError, AssertionError):
            return -1
        return sum(each["points"][0]["value"] or 0 for each in series)

    def counted(self) -> dict[str, Any]:
        """After a last publication: cells compared with a full recompute, and where every record went (I02, I10)."""
        self.load.rest()
        wait_until(self.faults.all_run, "every component to be back")
        before = self._publication()
        compared = _done([sys.executable, "-m", "tests.system.drills.publish_and_verify"], self.stack.environment)
        if compared.returncode:
            self.said.append(self._ended("publishing and comparing", compared))
        is_published = self._publication() > before
        if not is_published:
            self.said.append(f"nothing was published after publication {before}")
        self.look()
        verdict = json.loads(compared.stdout or "{}")
        dead_letters = json.loads(self.galatea("dead-letters", "list", "--json").stdout or "{}").get("counts", {})
        table = arrow_dataset(open_table(f"{self.settings.paths.master_uri}/pos_transactions"))
        places = table.filter(pc.field("store").isin(STORES)).to_table(columns=["partition", "offset"])
        archived = len(set(zip(*(places[name].to_pylist() for name in places.column_names), strict=True)))
        found = {
            "archived": archived,
            "duplicates": self.roll.duplicates,
            "dead_letters": dead_letters,
            "cells_compared": verdict.get("cells", 0),
            "cells_different": verdict.get("differing", -1),
        }
        unexplained = self._unexplained()
        self.history.add(Operation.COUNT, **found, unexplained=unexplained, is_published=is_published)
        due = {
            "cells_different": (found["cells_different"], 0),
            "archived": (archived, len(self.roll.deliveries) - self.roll.broken),
            "broken": (dead_letters.get("not_json", 0), self.roll.broken),
            "unexplained": (unexplained, 0),
        }
        self.said += [f"{name}: {is_} instead of {must}" for name, (is_, must) in due.items() if is_ != must]
        return found

    def _ended(self, what: str, done: subprocess.CompletedProcess[str]) -> str:
        said = f"{what}: {done.returncode} {' '.join(done.stderr.strip().splitlines()[-1:])}"
        return said.replace(str(self.settings.home), "GALATEA_HOME")

    def _publication(self) -> int:
        newest = self.stack.get("/v1/publications", limit=1)["publications"]
        return max((each["publication"] for each in newest), default=0)

    def _unexplained(self) -> int:
        """How many states the ledgers could not explain (I20)."""
        newest = self.stack.get("/v1/publications", limit=2)["publications"]
        summary = (
            self.stack.get("/v1/corrections", publication=each["publication"], cause="unexplained")["corrections"]
            for each in newest
            if each["publication"]
        )
        return sum(map(len, summary))


def _done(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)


@contextmanager
def _running(settings: Settings) -> Iterator[None]:
    """The stack. A component has three minutes to serve, which may be too little where many stacks start at once."""
    names = [*COMPONENTS, *(node.name for node in nodes_of("kafka", settings.kafka.brokers)[1:])]
    for tries_left in reversed(range(STARTS)):
        running = Running(settings, names)
        try:
            running.__enter__()
        except OperatorError:
            if not tries_left:
                raise
        else:
            break
    with ExitStack() as leaving:
        leaving.push(running.__exit__)
        yield


@contextmanager
def drill_stack(
    folder: Path, seed: int, mix: Mix, crash_at: str = "", place: Topology = ONE_NODE
) -> Iterator[DrillStack]:
    """A stack of its own with epochs of a second, that is asked ten times a second and fed all the while.

    With the variable ON_OBJECT_STORE, tables and checkpoints are on one, which loses answers to commits; with
    SECURED_STACK, it is one of `galatea up --secure`.
    """
    before = dict(os.environ)
    with ExitStack() as ended:
        history = ended.enter_context(History(HISTORIES / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{seed}.jsonl.gz"))
        roll = TillRoll(history=history)
        served = ended.enter_context(object_store_for_stacks()) if os.environ.get(ON_OBJECT_STORE) else None
        more = {**secured(), **(served.variables if served else {}), **place.settings}
        settings, environment = settings_of(folder / "home", GALATEA_KAFKA_BROKERS=str(place.brokers), **more)
        settings = settings.replace(crash_at=crash_at)
        ensure_jars(settings)
        ended.callback(_put_back, before)
        os.environ.update(environment)
        with disks(folder / "disks", [settings.home / name for name in place.disks]) as own, _running(settings):
            if served is not None:
                served.lose_answers()
            load = Load(settings.kafka.connection, seed, mix, roll)
            sampler = Sampler(settings, roll, around_now(), history)
            load.start()
            sampler.start()
            load.go_on()
            stack = Stack(settings, environment)
            on = DrillStack(stack, Faults(settings), load, roll, sampler, history, disks=own)
            try:
                yield on
            finally:
                on.leave()


def _put_back(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
