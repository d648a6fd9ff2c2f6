"""Mutation testing of the rules that everything rests on: most changes of a line have to fail a fast test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REACHED, KILLED = 0.8, 0.8
"""Shares: of all mutants, those in code that fast tests run; of these, those that fail a test.

The others plan with real brokers and tables, as integration tests do, or are texts of errors and settings of drivers.
"""


@pytest.mark.nightly
def test_fast_tests_kill_most_mutants_of_the_core_rules() -> None:
    for words in (["run"], ["export-cicd-stats"]):
        subprocess.run([sys.executable, "-m", "mutmut", *words], check=True)
    stats = json.loads(Path("mutants/mutmut-cicd-stats.json").read_text(encoding="utf-8"))

    total, killed = stats["total"], stats["killed"] + stats["timeout"]
    reached = total - stats["no_tests"]

    assert total > 100
    assert reached / total >= REACHED, f"{stats['no_tests']} of {total} mutants are in code that no fast test runs"
    assert killed / reached >= KILLED, f"{killed} of {reached} mutants were killed; `mutmut results` lists the others"
