"""After a kill -9 of the supervisor its children are found again, all of them, and nobody else's process is touched."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from deploy.local.records import Records, read_states
from deploy.local.supervisor import end_orphans
from master_dataset.errors import OperatorError

# Like Spark's Python daemon: a process group of its own, the session of its component, and deaf to SIGTERM.
LEADER_WITH_A_DAEMON = """
import os, signal, subprocess, sys, time
daemon = "import os, signal, time; os.setpgid(0, 0); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", daemon])
time.sleep(60)
"""


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", LEADER_WITH_A_DAEMON], start_new_session=True)
    deadline = time.monotonic() + 20
    while not psutil.Process(process.pid).children() and time.monotonic() < deadline:
        time.sleep(0.02)
    yield process
    if process.poll() is None:
        for child in psutil.Process(process.pid).children():
            child.kill()
    process.kill()
    process.wait()


def test_the_whole_session_ends_with_its_leader(tmp_path: Path, leader: subprocess.Popen[bytes]) -> None:
    records = Records(tmp_path)
    records.write("speed", leader.pid)
    session = Records(tmp_path).session("speed")  # read from the file, as after a kill -9
    assert len(session) == 2
    records.end("speed", grace_seconds=2)
    assert leader.wait(5) is not None
    assert not [each for each in session if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert records.names() == []


def test_the_daemon_is_found_when_its_leader_is_gone(tmp_path: Path, leader: subprocess.Popen[bytes]) -> None:
    records = Records(tmp_path)
    records.write("speed", leader.pid)
    leader.kill()
    leader.wait()
    assert records.pid("speed") is None
    [daemon] = records.session("speed")
    records.end("speed", grace_seconds=2)
    assert not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE


def test_a_pid_that_was_given_away_is_not_touched(tmp_path: Path, leader: subprocess.Popen[bytes]) -> None:
    records = Records(tmp_path)
    records.write("speed", leader.pid)
    file = tmp_path / "run" / "speed.pid.json"
    record = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps({**record, "started": record["started"] - 3600}))
    assert records.session("speed") == []
    records.end("speed", grace_seconds=1)
    assert leader.poll() is None


def test_a_process_of_another_boot_is_not_touched(
    tmp_path: Path, leader: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    Records(tmp_path).write("speed", leader.pid)
    monkeypatch.setattr("deploy.local.records.boot_id", lambda: "another")

    Records(tmp_path).end("speed", grace_seconds=1)

    assert leader.poll() is None


def test_a_process_is_found_after_the_clock_was_stepped(
    tmp_path: Path, leader: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records(tmp_path)
    records.write("speed", leader.pid)
    earlier = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: earlier(process) + 1)

    assert records.pid("speed") == leader.pid
    assert len(records.session("speed")) == 2


def test_a_copy_of_a_home_does_not_touch_the_processes_of_the_original(
    tmp_path: Path, leader: subprocess.Popen[bytes]
) -> None:
    Records(tmp_path / "home").write("speed", leader.pid)
    shutil.copytree(tmp_path / "home", tmp_path / "copy")

    assert Records(tmp_path / "copy").session("speed") == []
    assert end_orphans(tmp_path / "copy", []) == []
    assert Records(tmp_path / "home").pid("speed") == leader.pid


def test_a_process_that_the_former_release_recorded_is_found(tmp_path: Path, leader: subprocess.Popen[bytes]) -> None:
    records, process = Records(tmp_path), psutil.Process(leader.pid)
    file = tmp_path / "run" / "speed.pid.json"

    file.write_bytes(orjson.dumps({"pid": leader.pid, "created": process.create_time() - 3600}))
    another = records.pid("speed"), records.session("speed")
    file.write_bytes(orjson.dumps({"pid": leader.pid, "created": process.create_time()}))

    assert another == (None, [])
    assert records.pid("speed") == leader.pid
    assert len(records.session("speed")) == 2
    leader.kill()
    leader.wait()
    assert len(records.session("speed")) == 1
    records.end("speed", grace_seconds=1)
    assert records.names() == []


def test_a_record_that_a_power_cut_has_emptied_names_no_process(tmp_path: Path) -> None:
    records = Records(tmp_path)
    (tmp_path / "run" / "kafka.pid.json").touch()
    (tmp_path / "run" / "states.json").touch()

    assert (records.pid("kafka"), records.session("kafka"), read_states(tmp_path)) == (None, [], {})


def test_a_home_that_is_a_file_names_the_setting(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("")
    with pytest.raises(OperatorError, match="cannot be used: it is a file") as refused:
        Records(home)
    assert "GALATEA_HOME" in refused.value.do
