"""A command ends with its parent, however that ends."""

import subprocess
import sys

import pytest

from deploy.process import PARENT_ENDED_EXIT, WATCHDOG_VARIABLE

CODE = """
import time
from deploy.process import start_parent_watchdog
start_parent_watchdog()
print("on", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("said", [b"", b"anything"])
def test_a_watched_command_ends_with_its_standard_input_and_not_before(said: bytes) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CODE], env={WATCHDOG_VARIABLE: "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as command:
        assert command.stdin
        assert command.stdout
        command.stdout.readline()
        command.stdin.write(said)
        command.stdin.flush()
        before = command.poll()
        command.stdin.close()

        assert before is None
        assert command.wait(60) == PARENT_ENDED_EXIT


def test_a_command_of_a_person_does_not_watch_its_standard_input() -> None:
    code = CODE.replace("time.sleep(600)", "time.sleep(0.5)")

    done = subprocess.run(
        [sys.executable, "-c", code], env={}, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, b"on\n")
