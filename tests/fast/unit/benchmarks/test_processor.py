"""CPU seconds never decrease, whatever ends or changes its program in the meantime."""

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import processor
from benchmarks.processor import SAMPLE_SECONDS, Meter

BURN = "import time\nwhile time.process_time() < 0.6: pass\nprint('burnt', flush=True)\nimport sys; sys.stdin.read()"


PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BURN!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
"""


class Living(NamedTuple):
    """A process in one look at the tree. Its pid may be that of an earlier one; then it was created later."""

    pid: int
    created: float
    name: str
    spent: float


LIVING = st.builds(
    Living,
    st.integers(1, 3),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from(["python", "java", "bash"]),
    st.floats(0, 100, allow_nan=False),
)
LOOKS = st.lists(st.lists(LIVING, max_size=4), min_size=2, max_size=8)


def burnt_by_a_grandchild_without_parent(meter: Meter) -> float:
    """CPU seconds before the parent ends and then the grandchild, whose input ends with it."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout
    parent.stdout.readline()
    before = meter.seconds
    parent.communicate(b"end\n")
    return before


def test_seconds_of_a_process_stay_counted_when_it_and_its_parent_have_ended() -> None:
    with Meter() as meter:
        before = burnt_by_a_grandchild_without_parent(meter)
        time.sleep(2 * SAMPLE_SECONDS)

    assert before >= 0.6
    assert meter.seconds >= before


@given(LOOKS)
def test_no_program_ever_uses_less_than_at_an_earlier_look(looks: Sequence[Sequence[Living]]) -> None:
    left = iter(looks)
    measured = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processor, "SAMPLE_SECONDS", 3600.0)
        patch.setattr(
            processor,
            "_tree",
            lambda _: [(processor.ProcessId(each.pid, each.created), each.name, each.spent) for each in next(left, ())],
        )
        with Meter() as meter:
            measured = [meter.by_program() for _ in looks[1:]]

    for program in ("java", "python"):
        seconds = [0.0, *(each[program] for each in measured)]
        assert seconds == sorted(seconds)


def test_a_shell_that_becomes_java_takes_no_seconds_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = processor.ProcessId(7, 1.0)
    looks = iter([[], [(id_, "bash", 2.0)], [(id_, "java", 5.0)], [(id_, "java", 6.0)]])
    monkeypatch.setattr(processor, "SAMPLE_SECONDS", 3600.0)
    monkeypatch.setattr(processor, "_tree", lambda _: next(looks, []))

    with Meter() as meter:
        found = [meter.by_program() for _ in range(3)]

    assert found == [{"java": 0.0, "python": 2.0}, {"java": 3.0, "python": 2.0}, {"java": 4.0, "python": 2.0}]


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
