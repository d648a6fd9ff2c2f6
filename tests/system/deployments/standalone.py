"""A Spark standalone master with two workers on loopback, each with a folder of its own."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from deploy.java import java_home_for_spark
from deploy.local.ports import free_ports
from deploy.settings import Settings
from tests.integration.conftest import PATIENCE_SECONDS

WORKERS = 2
SLOTS = "4"
"""Of each worker: archive, speed and a command take one each, and one that has just ended may still hold its own."""


@dataclass(frozen=True)
class Standalone:
    """A running cluster. `folders`: where each worker keeps what its executors print. `pids`: of master and workers."""

    master: str
    folders: list[Path]
    pids: list[int]

    def applications(self) -> list[set[str]]:
        """Of each worker, the applications that had an executor on it which ran a task."""
        return [
            {log.parents[1].name for log in folder.glob("app-*/*/stderr") if "Running task" in log.read_text()}
            for folder in self.folders
        ]


@contextmanager
def standalone(folder: Path, settings: Settings) -> Iterator[Standalone]:
    """The cluster; ended, with every executor, on leaving."""
    [port] = free_ports(1)
    url = f"spark://127.0.0.1:{port}"
    folders = [folder / f"worker-{number}" for number in range(WORKERS)]
    started: list[psutil.Popen] = []
    try:
        master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        started.append(_started(folder, "master", master, settings))
        _until(lambda: "ALIVE" in (folder / "master.log").read_text(), started)
        for own in folders:
            own.mkdir(parents=True)
            place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--work-dir", str(own)]
            worker = ["worker.Worker", *place, "--cores", SLOTS, "--memory", "4g", url]
            started.append(_started(folder, own.name, worker, settings))
        logs = [folder / f"{own.name}.log" for own in folders]
        _until(lambda: all("Successfully registered" in log.read_text() for log in logs), started)
        yield Standalone(url, folders, [each.pid for each in started])
    finally:
        _end(started)


def _started(folder: Path, name: str, command: list[str], settings: Settings) -> psutil.Popen:
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "JAVA_HOME": str(java_home_for_spark(settings)),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "128m",
        "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "SPARK_CONF_DIR": str(folder),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.log").open("wb") as log:
        words = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{command[0]}", *command[1:]]
        return psutil.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)


def _until(is_so: Callable[[], bool], started: list[psutil.Popen]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        assert all(each.is_running() and each.poll() is None for each in started), "a daemon of the cluster has ended"
        time.sleep(0.1)


def _end(started: list[psutil.Popen]) -> None:
    """Whatever they started, too."""
    family: list[psutil.Process] = [*started]
    for daemon in started:
        family += daemon.children(recursive=True) if daemon.is_running() else []
    for daemon in reversed(started):
        _signal(daemon.terminate)
    _, alive = psutil.wait_procs(family, timeout=30)
    for process in alive:
        _signal(process.kill)
    for daemon in started:
        daemon.wait()


def _signal(send: Callable[[], None]) -> None:
    with suppress(psutil.NoSuchProcess):  # it has ended by itself
        send()
