"""The stack of a drill: running under load, with a journal of what was sent and a check of what it returns at rest."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
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
from tests.system.drills.host_faults import Disk, disks
from tests.system.drills.load import Load, Mix
from tests.system.drills.receipts import STORES
from tests.system.drills.sampler import METRIC, Sampler
from tests.system.drills.till_roll import Due, TillRoll

ON_OBJECT_STORE = "DRILLS_ON_OBJECT_STORE"
COMPONENTS = ("kafka", "cassandra", "archive", "speed", "api")
STARTS = 3
REST_SECONDS = 900.0
"""So long a stack may take to have counted what was sent: after that it hangs."""


class Topology(NamedTuple):
    """How many brokers a stack has. `disks`: the folders of its home that get a file system of their own."""

    brokers: int = 1
    disks: Sequence[str] = ()


ONE_NODE = Topology()


@dataclass
class DrillStack:
    """`stack` is a stack as users meet it. `said`: what goes wrong, in words; nothing does where it is empty.

    `disks`: of the folders of the home that have one of their own.
    """

    stack: Stack
    faults: Faults
    load: Load
    roll: TillRoll
    sampler: Sampler
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
        deadline, found = time.monotonic() + REST_SECONDS, ""
        while found := self._differs():
            if time.monotonic() > deadline:
                self.said.append(f"at rest: {found}")
                return
            time.sleep(0.3)

    def _differs(self) -> str:
        try:
            receipts, sales = (self._answer(metric) for metric in (METRIC, "net_sales"))
        except (httpx.TransportError, AssertionError) as error:
            return f"no answer: {type(error).__name__} {error}"[:300]
        for name, (value, waiting, cut) in (("receipts", receipts), ("minor", sales)):
            due: Due = self.roll.due(cut)
            shown = round(value * (100 if name == "minor" else 1))
            if (shown, waiting) != (getattr(due, name), due.waiting):
                must = f"{getattr(due, name)} and {due.waiting}"
                return f"{name} {shown} and {waiting} wait, instead of {must}, cut {cut}"
        return ""

    def _answer(self, metric: str) -> tuple[float, int, Any]:
        body = self.stack.get(f"/v1/metrics/{metric}", store=STORES, grain="total", timezone="UTC", **around_now())
        value = sum(point["value"] or 0 for series in body["series"] for point in series["points"])
        return value, body["as_of"]["waiting_for_batch"], datetime.fromisoformat(body["as_of"]["cut"])

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
        if self._publication() <= before:
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
        due = {
            "cells_different": (found["cells_different"], 0),
            "archived": (archived, len(self.roll.deliveries) - self.roll.broken),
            "broken": (dead_letters.get("not_json", 0), self.roll.broken),
            "unexplained": (self._unexplained(), 0),
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
    before, roll = dict(os.environ), TillRoll()
    with ExitStack() as ended:
        served = ended.enter_context(object_store_for_stacks()) if os.environ.get(ON_OBJECT_STORE) else None
        more = {**secured(), **(served.variables if served else {})}
        settings, environment = settings_of(folder / "home", GALATEA_KAFKA_BROKERS=str(place.brokers), **more)
        settings = settings.replace(crash_at=crash_at)
        ensure_jars(settings)
        ended.callback(_put_back, before)
        os.environ.update(environment)
        with disks(folder / "disks", [settings.home / name for name in place.disks]) as own, _running(settings):
            if served is not None:
                served.lose_answers()
            load = Load(settings.kafka.connection, seed, mix, roll)
            sampler = Sampler(settings, roll, around_now())
            load.start()
            sampler.start()
            load.go_on()
            yield DrillStack(Stack(settings, environment), Faults(settings), load, roll, sampler, disks=own)
            load.leave()
            sampler.leave()


def _put_back(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
