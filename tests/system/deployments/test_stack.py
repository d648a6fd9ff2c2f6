"""The real broker and the real Cassandra: what is killed comes back, and `galatea down` leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from deploy.local.ports import is_free
from deploy.local.records import Records
from deploy.local.supervisor import SUPERVISOR
from deploy.settings import Settings
from tests.integration.conftest import PATIENCE_SECONDS
from tests.support.free_settings import settings_on_free_ports

pytestmark = pytest.mark.nightly

ONLY = ("--only", "kafka,cassandra")
NAMES = ("kafka", "cassandra", "archive", "speed", "alerts", "dispatcher", "api", "sql", "airflow")


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    found = settings_on_free_ports(tmp_path)
    yield found
    galatea(found, "down")


def galatea(settings: Settings, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "galatea.cli.main", *words]
    environment = {**os.environ, **settings.environment()}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )


def components(settings: Settings) -> dict[str, dict[str, Any]]:
    answer = json.loads(galatea(settings, "status", "--json").stdout)
    assert answer["home"] == str(settings.home)
    return {component["name"]: component for component in answer["components"]}


def left_over(settings: Settings) -> list[str]:
    """Every living process that names this home, and every port of it that somebody holds."""
    home = str(settings.home)
    processes = [each.info for each in psutil.process_iter(["pid", "cmdline"]) if home in str(each.info["cmdline"])]
    inner = (settings.kafka.controller_port, settings.cassandra.storage_port)
    ports = [port for port in (settings.kafka.port, settings.cassandra.port, *inner) if not is_free(port)]
    return [*map(str, processes), *map(str, ports)]


def wait_until(is_so: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)


def supervisor(settings: Settings) -> int:
    pid = Records(settings.home).pid(SUPERVISOR)
    assert pid is not None
    return pid


def test_a_killed_broker_comes_back_and_a_killed_supervisor_leaves_nothing_after_down(settings: Settings) -> None:
    up = galatea(settings, "up", "--detach", *ONLY)
    assert up.returncode == 0, up.stderr
    before = components(settings)
    assert {name: each["state"] for name, each in before.items()} == {
        name: "running" if name in ONLY[1].split(",") else "stopped" for name in NAMES
    }
    assert galatea(settings, "up", *ONLY).returncode == 1  # a second supervisor of one home

    os.kill(before["kafka"]["pid"], signal.SIGKILL)
    wait_until(lambda: components(settings)["kafka"]["pid"] not in (None, before["kafka"]["pid"]))
    wait_until(lambda: components(settings)["kafka"]["state"] == "running")
    assert "pos_transactions" in AdminClient(settings.kafka.connection.client()).list_topics(timeout=10).topics

    os.kill(supervisor(settings), signal.SIGKILL)
    wait_until(lambda: Records(settings.home).pid(SUPERVISOR) is None)
    assert left_over(settings)
    states = {name: each["state"] for name, each in components(settings).items()}
    assert states == {name: "unsupervised" if name in ONLY[1].split(",") else "stopped" for name in NAMES}
    assert "the supervisor was killed" in galatea(settings, "status").stderr
    down = galatea(settings, "down")
    assert down.returncode == 0, down.stderr
    assert left_over(settings) == []
    assert {each["state"] for each in components(settings).values()} == {"stopped"}
    assert galatea(settings, "down").returncode == 0  # nothing runs: that is fine


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_stop_everything_in_the_middle_of_a_start(
    settings: Settings, ending: signal.Signals
) -> None:
    environment = {**os.environ, **settings.environment()}
    command = [sys.executable, "-m", "galatea.cli.main", "up", *ONLY]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        wait_until(lambda: Records(settings.home).pid("cassandra") is not None)
        running.send_signal(ending)
        assert running.wait(60) == 0
    assert left_over(settings) == []
    assert (settings.home / "operator.key").stat().st_mode & 0o777 == 0o600
