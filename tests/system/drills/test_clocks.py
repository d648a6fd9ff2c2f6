"""Processes take their time of day from a clock that can be moved; what they measure with stays real."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.system.drills.clocks import Clock

pytestmark = pytest.mark.nightly
PROGRAM = """
import ctypes, datetime, sys, threading, time
from confluent_kafka import Consumer
before = time.monotonic()
time.sleep(0.2)
threading.Event().wait(0.2)
lock = threading.Lock()
lock.acquire()
lock.acquire(timeout=0.2)
Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "nobody", "log_level": 0}).poll(0.2)
print(time.time(), ctypes.CDLL(None).time(None), time.monotonic() - before, flush=True)
sys.stdin.readline()
print(datetime.datetime.now(datetime.UTC).timestamp())
"""

SPARK = """
import sys, time
from pathlib import Path
from deploy.settings import Settings
from deploy.spark import Work, spark_session
look = {"spark.storage.blockManagerTimeoutIntervalMs": "1000", "spark.network.timeoutInterval": "1s"}
settings = Settings(home=Path(sys.argv[1]), spark_master="local[1]", spark_conf=look)
spark = spark_session(settings, "test", Work.STREAM, memory_mb=512, partitions=1)
print(spark.range(10).count(), flush=True)
sys.stdin.readline()
time.sleep(15)  # a look, and a heartbeat after it
print(spark.range(20).count())
spark.stop()
"""


class Seen(NamedTuple):
    """By how much the time of day was off. `took`: sleeps and waits of 0.8 s."""

    off: float
    off_in_seconds: float
    took: float
    off_later: float


def seen(clock: Clock, environment: Mapping[str, str], later: float) -> Seen:
    """What a process saw before and after the clock was moved."""
    command, own = [sys.executable, "-c", PROGRAM], {**os.environ, **environment}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=own, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        off, seconds, took = map(float, process.stdout.readline().split())
        now = time.time()
        clock.put(later)
        said, _ = process.communicate("\n")
    return Seen(off - now, seconds - now, took, float(said) - time.time())


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """An hour ahead; who has one of its own is a quarter behind that."""
    found = Clock(tmp_path / "clock")
    found.put(3600)
    found.deviate(-900)
    return found


@pytest.mark.parametrize(("is_own", "off"), [(False, 3600), (True, 2700)])
def test_a_clock_moves_while_a_process_runs_and_sleeps_take_as_long_as_ever(
    clock: Clock,
    off: float,
    is_own: bool,  # noqa: FBT001 - a parametrised expectation
) -> None:
    found = seen(clock, clock.environment(is_own=is_own), 5000.5)

    assert found.off == pytest.approx(off, abs=60)
    assert found.off_in_seconds == pytest.approx(off, abs=60)
    assert 0.8 <= found.took < 60
    assert found.off_later == pytest.approx(off + 1400.5, abs=60)


@pytest.mark.usefixtures("clock")
def test_a_file_that_is_there_keeps_its_clock(tmp_path: Path) -> None:
    again = Clock(tmp_path / "clock")

    assert seen(again, again.environment(), 7200).off == pytest.approx(3600, abs=60)


def test_a_clock_that_goes_forward_does_not_make_spark_lose_itself(clock: Clock, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPARK, str(tmp_path / "home")]
    own, pipe = {**os.environ, **clock.environment()}, subprocess.PIPE
    with subprocess.Popen(command, env=own, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        counted = process.stdout.readline()
        clock.put(3600 + 600)
        said, complaints = process.communicate("\n")

    assert (counted.strip(), said.strip(), process.returncode) == ("10", "20", 0), complaints
    assert "Removing executor" not in complaints
    assert "Issue communicating with driver" not in complaints
