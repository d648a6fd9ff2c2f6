"""Alert processes under test: each is started, and killed as by `kill -9` if it has not ended by itself."""

import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from deploy.services.alerts import READY, WatchedProcess
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.registry.stores import Store
from tests.system.drills.alert_processor import DISCARDED, FENCED, RULE_HISTORY, Orders, forked, noted
from tests.system.drills.tills import BOUNDS
from views.alerts.rule_history import rule_version, store_version
from views.alerts.rule_validation import parse_rule

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

PARTITIONS = 2
START_SECONDS = 120.0
LOOK_SECONDS = 0.01

_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["tests.system.drills.alert_processor", "tests.system.drills.alert_faults"])


class AlertProcess:
    """One process. `kills`: whether it was ended, and not by itself."""

    def __init__(self, orders: Orders) -> None:
        """It has begun."""
        self._reports, reports = _forking.Pipe(duplex=False)
        self._partitions = len(orders.partitions)
        self.process: ForkServerProcess = _forking.Process(target=forked, args=(msgspec.json.encode(orders), reports))
        self.process.start()
        reports.close()
        self._heard = b""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; it may be paused."""
        return self.process.is_alive()

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        try:
            return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def is_ready(self) -> bool:
        """Whether every partition reads."""
        _hear(self._reports, self._heard_of)
        return self._heard.count(READY) >= self._partitions

    def until(self, so: Callable[[], bool], seconds: float) -> bool:
        """Wait for it while the process runs. Whether it came."""
        deadline = time.monotonic() + seconds
        while not (found := so()) and self.is_running and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        return found or so()

    def signal(self, number: signal.Signals) -> None:
        """Such as SIGSTOP, SIGCONT."""
        if self.is_running:
            os.kill(self.process.pid or 0, number)

    def end(self) -> bool:
        """As by `kill -9`, unless it has ended; whether it was killed, by us or at its failpoint."""
        if self.process.exitcode is None:
            self.process.kill()
        self.process.join()
        killed = self.process.exitcode == -signal.SIGKILL
        self.process.close()
        self._reports.close()
        return killed

    def _heard_of(self, said: bytes) -> None:
        self._heard += said


def _hear(reports: Connection, heard: Callable[[bytes], None]) -> None:
    try:
        while reports.poll():
            heard(reports.recv_bytes())
    except (EOFError, OSError):
        return


@dataclass
class AlertProcesses:
    """Of alert processors with the same identity. `kills`: how many were ended as by `kill -9`."""

    direct: KafkaConnection
    proxied: KafkaConnection
    folder: Path
    naive: str = ""
    kills: int = 0

    def write_rules(self, stores: int) -> None:
        """The rules that they follow: a bound each, for every store."""
        versions = [store_version(Store(id=str(each), timezone="UTC"), 1, 0) for each in range(1, stores + 1)]
        for bound in BOUNDS:
            said = {"kind": "threshold", "id": f"above-{bound}", "metric": "gross_sales", "window": "15m"}
            versions.append(rule_version(parse_rule({**said, "above": f"{bound / 100:.2f}"}), 1, 0))
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / RULE_HISTORY).write_bytes(msgspec.json.encode(versions))

    def orders(self, *, proxied: bool = False) -> Orders:
        """Follow every partition until somebody ends it."""
        kafka = self.proxied if proxied else self.direct
        return Orders(kafka.bootstrap, str(self.folder), tuple(range(PARTITIONS)), naive=self.naive)

    def begin(self, orders: Orders) -> AlertProcess:
        """One that somebody has to finish."""
        return AlertProcess(orders)

    def finish(self, life: AlertProcess) -> None:
        """It runs no more."""
        self.kills += life.end()

    @contextmanager
    def life(self, orders: Orders) -> Iterator[AlertProcess]:
        """From its start until it is ended."""
        begun = self.begin(orders)
        try:
            yield begun
        finally:
            self.finish(begun)

    @contextmanager
    def watched(self, orders: Orders) -> Iterator[WatchedProcess]:
        """The same under the watchdog of the product."""
        said = msgspec.json.encode(orders).decode()
        command = [sys.executable, "-m", "tests.system.drills.alert_processor", said]
        begun = WatchedProcess(command, dict(os.environ), len(orders.partitions))
        try:
            yield begun
        finally:
            self.kills += begun.ended() is None
            begun.end()

    def forget(self) -> None:
        """Delete the snapshots."""
        for partition in range(PARTITIONS):
            shutil.rmtree(self.folder / str(partition), ignore_errors=True)

    @property
    def discarded(self) -> int:
        """Producers that gave themselves up."""
        return noted(self.folder, DISCARDED)

    @property
    def fenced(self) -> int:
        """Alert processors that were fenced because another has taken over."""
        return noted(self.folder, FENCED)

    @property
    def crashed(self) -> int:
        """Ends at failpoints."""
        return sum(1 for _ in self.folder.glob("crashed-*/*"))
