"""The plan of a simulated day follows from its seed, and what is found becomes a line of the ledger."""

import json

import pytest

from tests.system.drills.day import Day
from tests.system.drills.day_plan import BEYOND, BEYOND_EVERY, HOUR_SECONDS, LONGEST_JUMP, Kind, planned_hour

REAL_SECONDS, SKEW = 60.0, 5.0
SEEDS = range(10)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_hour_passes_by_jumps_and_the_real_time_in_between(seed: int) -> None:
    hour = planned_hour(seed, 3, REAL_SECONDS, SKEW)

    jumps = [move.seconds for move in hour.moves if move.kind == Kind.JUMP]
    assert sum(jumps) + REAL_SECONDS == pytest.approx(HOUR_SECONDS)
    assert 0 < min(jumps) <= max(jumps) <= LONGEST_JUMP
    assert sum(move.pause for move in hour.moves) <= REAL_SECONDS
    assert hour == planned_hour(seed, 3, REAL_SECONDS, SKEW)
    assert hour != planned_hour(seed + 1, 3, REAL_SECONDS, SKEW)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_broker_steps_both_ways_within_the_skew_and_while_a_rebuild_runs(seed: int) -> None:
    moves = [move for number in range(24) for move in planned_hour(seed, number, REAL_SECONDS, SKEW).moves]

    steps = [move.seconds for move in moves if move.kind == Kind.STEP]
    assert max(steps) - min(steps) < SKEW
    assert min(steps) < 0 < max(steps)
    rebuilds = [place for place, move in enumerate(moves) if move.kind == Kind.REBUILD]
    assert len(rebuilds) == 24
    assert all({moves[at - 1].kind, moves[at + 1].kind} == {Kind.STEP} for at in rebuilds)


def test_a_day_has_steps_beyond_the_skew_in_both_directions() -> None:
    beyond = {number: planned_hour(7, number, REAL_SECONDS, SKEW).beyond for number in range(24)}

    found = {number: seconds for number, seconds in beyond.items() if seconds}
    assert list(found) == list(range(0, 24, BEYOND_EVERY))
    assert all(BEYOND[0] <= abs(seconds) <= BEYOND[1] for seconds in found.values())
    assert {seconds > 0 for seconds in found.values()} == {True, False}


def test_a_day_is_kept_as_a_line_with_all_that_was_found() -> None:
    day = Day(24, 7, refused={"store_unavailable": 2}, dead_letters={"not_json": 5}, wrong=["too much"])

    kept = json.loads(day.line())

    assert (kept["hours"], kept["seed"], kept["refused"]) == (24, 7, {"store_unavailable": 2})
    assert (kept["dead_letters"], kept["wrong"], kept["differing"]) == ({"not_json": 5}, ["too much"], 0)
