"""Mutation testing of the rules that everything rests on: most changes of a line have to fail a fast test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FLOOR = 0.7
"""Share of mutants that fast tests have to kill. Survivors are mostly texts of errors and settings of drivers."""


@pytest.mark.nightly
def test_fast_tests_kill_most_mutants_of_the_core_rules() -> None:
    for words in (["run"], ["export-cicd-stats"]):
        subprocess.run([sys.executable, "-m", "mutmut", *words], check=True)
    stats = json.loads(Path("mutants/mutmut-cicd-stats.json").read_text(encoding="utf-8"))

    killed, total = stats["killed"], stats["total"]

    assert total > 100
    assert killed / total >= FLOOR, f"{killed} of {total} mutants were killed; `mutmut results` lists the others"
