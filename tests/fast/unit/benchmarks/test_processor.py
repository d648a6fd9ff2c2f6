"""Processor seconds never go back, whatever ends meanwhile."""

import subprocess
import sys
import time

from benchmarks.processor import EVERY_SECONDS, Meter

BURN = "import time\nwhile time.process_time() < 0.6: pass\nprint('burnt', flush=True)\nimport sys; sys.stdin.read()"


PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BURN!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
"""


def burnt_by_a_grandchild_without_parent(meter: Meter) -> float:
    """Processor seconds before the parent ends and then the grandchild, whose input ends with it."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout
    parent.stdout.readline()
    before = meter.seconds
    parent.communicate(b"end\n")
    return before


def test_seconds_of_a_process_stay_counted_when_it_and_its_parent_have_ended() -> None:
    with Meter() as meter:
        before = burnt_by_a_grandchild_without_parent(meter)
        time.sleep(2 * EVERY_SECONDS)

    assert before >= 0.6
    assert meter.seconds >= before


def test_what_was_used_before_the_measurement_is_not_counted() -> None:
    until = time.process_time() + 0.5
    while time.process_time() < until:
        pass

    with Meter() as meter:
        pass

    assert 0 <= meter.seconds < 0.5


def test_java_is_counted_apart() -> None:
    with Meter() as meter:
        found = meter.by_program()

    assert found["java"] == 0.0
    assert found["python"] >= 0.0
