"""A failpoint kills the process at the planned pass, once per home."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from master_dataset.failpoints import Failpoint, PlannedCrash, parse_plan

PASSES_THREE_TIMES = """
import sys
from pathlib import Path
from master_dataset.failpoints import Failpoint, arm, failpoint

arm(sys.argv[1], Path(sys.argv[2]))
for number in range(3):
    failpoint(Failpoint.SPEED_CLAIMED)
    print(number, flush=True)
"""


def passes(plan: str, folder: Path) -> tuple[int, list[str]]:
    """Exit code, and the passes that came to an end, of a process that passes one point three times."""
    command = [sys.executable, "-c", PASSES_THREE_TIMES, plan, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.split()


def test_without_a_plan_nothing_ends(tmp_path: Path) -> None:
    assert passes("", tmp_path) == (0, ["0", "1", "2"])


def test_a_process_ends_at_the_planned_pass_and_once_only(tmp_path: Path) -> None:
    plan = "archive.begun:1,speed.claimed:2"

    first, again = passes(plan, tmp_path), passes(plan, tmp_path)

    assert first == (-signal.SIGKILL, ["0"])
    assert again == (0, ["0", "1", "2"])


def test_a_plan_names_points_and_passes() -> None:
    assert parse_plan("speed.rows, archive.events:3") == [
        PlannedCrash(Failpoint.SPEED_ROWS, 1),
        PlannedCrash(Failpoint.ARCHIVE_EVENTS, 3),
    ]


@pytest.mark.parametrize("plan", ["speed.nowhere:1", "speed.rows:0", "speed.rows:x"])
def test_a_plan_that_says_nothing_that_exists_is_refused(plan: str) -> None:
    with pytest.raises(ValueError, match=r"speed\."):
        parse_plan(plan)


@pytest.mark.parametrize("point", Failpoint)
def test_every_point_is_passed_in_one_place(point: Failpoint) -> None:
    product = [
        path
        for folder in ("master_dataset", "views", "speed_layer", "batch_layer", "deploy")
        for path in Path(folder).rglob("*.py")
    ]

    places = [path for path in product if f"failpoint(Failpoint.{point.name})" in path.read_text()]

    assert len(places) == 1
