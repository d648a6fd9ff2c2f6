"""The drill of a second process checks that this process took part, and did not just exit."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from tests.system.drills.quick import last, lived

CLAIMS = "print('batch=7 rows=20 addBatch=80 walCommit=3 event=speed.batch level=info')"
FINDS_NOTHING = "print('batch=7 rows=0 latestOffset=2 triggerExecution=2 event=speed.batch level=info')"
GOES_ON = "import os, time; print(os.getpid()); time.sleep(600)"


def python(*lines: str) -> list[str]:
    return [sys.executable, "-c", "\n".join(lines)]


@pytest.mark.parametrize("ends", ["import nothing_of_that_name", "raise SystemExit(0)", "raise SystemExit(3)"])
def test_a_second_process_that_ends_before_it_claims_has_not_taken_part(tmp_path: Path, ends: str) -> None:
    log = tmp_path / "second.log"

    took_part = lived(python("print('it begins')", ends), os.environ, log)

    assert took_part == ""
    assert "nothing_of_that_name" in last(log) or last(log) == "it begins"


def test_a_second_process_that_never_claims_has_not_taken_part_and_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "second.log"

    took_part = lived(python(FINDS_NOTHING, GOES_ON), os.environ, log, patience=2)

    assert took_part == ""
    assert not psutil.pid_exists(int(last(log)))


@pytest.mark.parametrize(
    ("says", "line"),
    [
        (CLAIMS, "wrote a micro-batch"),
        ("print('code=checkpoint_out_of_step event=process.stopped'); raise SystemExit(3)", "its claim was refused"),
    ],
)
def test_a_second_process_that_claims_or_is_refused_has_taken_part(tmp_path: Path, says: str, line: str) -> None:
    assert lived(python(says), os.environ, tmp_path / "second.log") == line


def test_a_second_process_that_has_taken_part_is_ended(tmp_path: Path) -> None:
    log, mine = tmp_path / "second.log", tmp_path / "pid"
    begins = f"import os; open({str(mine)!r}, 'w').write(str(os.getpid()))"

    took_part = lived(python(begins, CLAIMS, GOES_ON), os.environ, log)

    assert took_part == "wrote a micro-batch"
    assert not psutil.pid_exists(int(mine.read_text()))
