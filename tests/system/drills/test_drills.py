"""The quick drills: every process is killed in turn under load, and at rest every number is right."""

import math

import pytest

from tests.system.drills.ledger import PAGE, written
from tests.system.drills.ledger_line import PASS
from tests.system.drills.matrix import MATRIX
from tests.system.drills.performance import END
from tests.system.drills.quick import ARCHIVE_POINTS, DRILLS, SPEED_POINTS, crash_points, lines

SEED = 20261122


@pytest.mark.nightly
def test_each_fault_under_load_leaves_every_answer_exact() -> None:
    found = list(lines(SEED, seconds=math.inf))  # `make drills` checks that five minutes are enough

    assert {line.drill: line.why for line in found if line.verdict != PASS} == {}
    assert [line.drill for line in found] == [*(drill.id for drill in DRILLS if "Q" in drill.sets), END]
    assert found[-1].cells_compared > 0


def test_every_drill_stands_in_the_table_once() -> None:
    assert [row.id for row in MATRIX] == [f"D{number:02}" for number in range(1, 35)]
    assert {drill.id for drill in DRILLS} <= {row.id for row in MATRIX}


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_plans_one_point_of_each_process_that_is_to_crash(seed: int) -> None:
    both = crash_points(seed, ["D05", "D06"]).split(",")

    assert [point.partition(".")[0] for point in both] == ["speed", "archive"]
    assert crash_points(seed, ["D06"]) == both[1]
    assert crash_points(seed, ["D01"]) == ""
    assert {each.partition(":")[0] for each in crash_points(seed, ["D05", "D06"], every=True).split(",")} == {
        *SPEED_POINTS,
        *ARCHIVE_POINTS,
    }


def test_the_page_lists_every_drill() -> None:
    assert written() == PAGE.read_text(encoding="utf-8")
