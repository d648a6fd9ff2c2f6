"""From an earlier version to this one, a process at a time and back with two of them, while receipts arrive.

Two REST processes, behind a balancer in this test, are replaced one after the other, as they would be on any platform.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from deploy.cassandra import session_of
from deploy.local.cassandra import cassandra_nodes
from deploy.local.component import Component
from deploy.local.kafka import brokers
from deploy.local.ports import free_ports
from deploy.local.records import Records
from deploy.local.supervisor import Supervisor
from deploy.services.releases import read_layouts
from tests.fast.house.tree import ROOT
from tests.integration.conftest import Stack, around_now, repeated, settings_of, until, watched
from tests.integration.test_ledger import Sent, send
from tests.system.deployments.test_upgrade import installed, rebuilt, run
from views.control.publication import PointerRow
from views.control.speed_layout import layout_of

pytestmark = pytest.mark.nightly

BEFORE = "6b12d23d"
"""The last commit with one archive and one speed layer. Its views are those of today. If they were others, a rebuild
would have to publish them before the new REST processes answer.
"""
STORES = ("rolling-1", "rolling-2")
LAYERS = ("archive", "speed", "alerts", "dispatcher")
LONGEST_REFUSAL_SECONDS = 5.0
PER_SECOND = 10


@dataclass
class Release:
    """How a process of a release is started: its Python, and the folder that it imports from."""

    python: Path
    folder: Path

    def command(self, service: str) -> list[str]:
        return ["/usr/bin/env", "-C", str(self.folder), str(self.python), "-m", f"deploy.services.{service}"]


@dataclass
class Fleet:
    """Galatea's processes, each of a release of its own; a restart changes it."""

    home: Path
    releases: dict[str, Release]
    ports: Mapping[str, int]

    def components(self) -> list[Component]:
        return [self._component(name) for name in self.releases]

    def _component(self, name: str) -> Component:
        service, ready = name.partition("-")[0], self.home / "run" / f"{name}.ready"
        port = {"GALATEA_API_PORT": str(self.ports[name])} if name in self.ports else {}
        serves = (lambda: answers(self.ports[name])) if name in self.ports else ready.exists
        return Component(
            name=name,
            command=lambda: self.releases[name].command(service),
            serves=serves,
            environment=port,
            prepare=lambda: ready.unlink(missing_ok=True),
            stage=1,
        )

    def replace(self, name: str, release: Release) -> None:
        """End the process, and wait until one of that release is ready."""
        self.releases[name] = release
        records = Records(self.home)
        before = records.pid(name)
        assert before is not None
        os.kill(before, signal.SIGTERM)  # the supervisor starts it again
        until(lambda: records.pid(name) not in {None, before}, f"{name} is started again")
        until(next(each.serves for each in self.components() if each.name == name), f"{name} is ready")


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """The command of the earlier version."""
    with installed(BEFORE, tmp_path / "before") as command:
        yield command


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False


@dataclass
class Readers:
    """Ask for the total all the time, a process that is up, and note how long nobody answered."""

    ports: Sequence[int]
    key: str
    longest: float = 0.0
    since: float = field(default_factory=time.monotonic)
    answers: int = 0
    refusals: set[str] = field(default_factory=set)

    def ask(self) -> int | None:
        """The receipts of all stores; None if nobody answers."""
        return next((found for port in self.ports if (found := self.total(port)) is not None), None)

    def total(self, port: int) -> int | None:
        """The same of one process; None if it does not answer, or refuses to."""
        question = {"store": list(STORES), "grain": "total", **around_now()}
        try:
            answer = httpx.get(
                f"http://127.0.0.1:{port}/v1/metrics/total_transactions_count",
                params=question,
                headers={"Authorization": f"Bearer {self.key}"},
                timeout=30,
                trust_env=False,
            )
        except httpx.HTTPError as error:
            self.refusals.add(type(error).__name__)
            return None
        if answer.status_code == 200:
            return sum(series["points"][0]["value"] or 0 for series in answer.json()["series"])
        self.refusals.add(answer.text[:200])
        return None

    def counts(self, port: int, least: int) -> bool:
        """Whether the process answers. If it does, no receipt is missing."""
        found = self.total(port)
        assert found is None or found >= least, "a part of the receipts is shown"
        return found is not None

    def note(self) -> None:
        """Ask, and note how long nobody answered."""
        if self.ask() is not None:
            self.longest = max(self.longest, time.monotonic() - self.since)
            self.answers += 1
            self.since = time.monotonic()


def test_every_process_is_replaced_and_two_return_without_a_wrong_number_or_a_gap(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, environment = settings_of(tmp_path / "home")
    new = (sys.executable, "-m", "galatea.cli.main")
    before, now = Release(old.parent / "python", old.parents[2]), Release(Path(sys.executable), ROOT)
    ports = dict(zip(("api", "api-2"), (settings.api.port, free_ports(1)[0]), strict=True))
    fleet = Fleet(settings.home, dict.fromkeys((*LAYERS, *ports), before), ports)
    stack, receipts = Stack(settings, environment), list[Sent]()

    run(old, "up", "--detach", "--without-airflow", environment=environment, cwd=before.folder)  # creates the home
    run(old, "down", environment=environment, cwd=before.folder)
    # Topics and tables stay as the version before has made them, until they are migrated.
    clusters = [replace(node, once_ready=lambda: None) for node in (*brokers(settings), *cassandra_nodes(settings))]
    components = [*clusters, *fleet.components()]
    readers = Readers(list(ports.values()), (settings.home / "operator.key").read_text())

    def sell() -> None:
        now, first = datetime.now(UTC), len(receipts)
        new = [Sent(STORES[number % 2], first + number, now, 1.5) for number in range(PER_SECOND)]
        send(stack, [*new, *new[:2]])()
        receipts.extend(new)

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with Supervisor(settings.home, components) as running, watched(running):
        until(lambda: readers.ask() is not None, "the first answer")
        readers.since = time.monotonic()
        with repeated(readers.note, 0.2), repeated(sell, 1):
            until(lambda: len(receipts) > 100, "some receipts")
            run(old, "rebuild", "--wait", environment=environment, cwd=before.folder)
            run(*new, "migrate", environment=environment)
            for name, release in (*((name, now) for name in fleet.releases), ("archive", before), ("speed", before)):
                fleet.replace(name, release)
                sold = len(receipts)
                until(lambda sold=sold: (readers.ask() or 0) >= sold, f"all counted after {name}")  # type: ignore[misc]
            for name in ("archive", "speed"):
                fleet.replace(name, now)
            rebuilt(*new, environment=environment)
            session = session_of(settings.cassandra.address)
            until(lambda: all(read_layouts(session)), "no process of the version before")
            run(*new, "speed", "restart", "--wait", environment=environment)
            served = PointerRow(session).read().generation
            assert layout_of(session, served).packs_receipts
            # Those rows are not where the version before looks: it refuses, until its own speed layer has caught up.
            fleet.replace("api-2", before)
            assert readers.total(ports["api-2"]) is None
            sold = len(receipts)
            fleet.replace("speed", before)
            until(lambda: readers.counts(ports["api-2"], sold), "the version before answers")
            for name in ("speed", "api-2"):
                fleet.replace(name, now)
        until(lambda: readers.ask() == len(receipts), "all counted")
        rebuilt(*new, environment=environment)
        verdict = stack.galatea("verify")
        counted = readers.ask()

    print(f"{len(receipts)} receipts, {readers.answers} answers, none for {readers.longest:.1f} s, {readers.refusals}")  # noqa: T201
    assert counted == len(receipts)
    assert (verdict["differing"], verdict["waiting_for_batch"]) == (0, 0)
    assert readers.longest <= LONGEST_REFUSAL_SECONDS
