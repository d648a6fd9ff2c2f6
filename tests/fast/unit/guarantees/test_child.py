"""A process that an experiment kills is killed for real; one that fails by itself is no death."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.guarantees.child import append, processed, run_child
from master_dataset.errors import OperatorError

DIES = """
import atexit, sys
from lab.guarantees.child import die
from lab.guarantees.child import append
atexit.register(print, "said at the end")
with open(sys.argv[1], "a") as journal:
    try:
        append(journal, 7)
        journal.write("8")
        die()
    finally:
        print("cleaned up", flush=True)
"""


def test_a_death_is_as_sudden_as_a_power_cut_to_the_process(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    ended = subprocess.run([sys.executable, "-c", DIES, str(journal)], capture_output=True, check=False)

    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"")
    assert processed(journal) == [7]


def test_a_child_that_fails_is_distinguished_from_one_that_was_killed() -> None:
    with pytest.raises(OperatorError, match=r"ended with 1: .*unexpected keyword argument 'weather'"):
        run_child("lab.guarantees.experiments.commit_order", {"weather": "fine"})


def test_a_journal_that_nobody_has_begun_is_empty(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("a") as journal:
        append(journal, 3)
        append(journal, 1)

    assert processed(tmp_path / "journal") == [3, 1]
    assert processed(tmp_path / "none") == []
