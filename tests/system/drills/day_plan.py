"""The plan of a simulated day: how the clocks of a stack move. It follows from the seed alone."""

import math
from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import NamedTuple

HOUR_SECONDS = 3600.0
SHORTEST_JUMP, LONGEST_JUMP = 30.0, 1800.0
"""Of the clocks of all processes, in seconds. Short ones are as likely as long ones: the logarithm is drawn."""
STEPS = 5
"""Of the broker's own clock in an hour, within what is tolerated."""
TOLERATED = 0.96
"""The part of the skew that the broker's clock uses; the rest is for the time that a request takes."""
BEYOND_EVERY = 4
"""In so many hours, the broker's clock steps beyond what is tolerated once."""
BEYOND = (120.0, 280.0)
"""How far: more than an epoch and the skew, so that its records fall behind a cut that is already published."""


class Kind(StrEnum):
    """What happens to the clocks, or meanwhile."""

    JUMP = "jump"
    """All clocks go forward by so many seconds at the same moment."""
    STEP = "step"
    """The broker's clock is so many seconds ahead of all others from now on."""
    REBUILD = "rebuild"
    """A rebuild begins."""


class Move(NamedTuple):
    """`pause`: real seconds until it happens."""

    pause: float
    kind: Kind
    seconds: float = 0.0


class Hour(NamedTuple):
    """`beyond`: how far the broker's clock steps beyond the skew at the end of the hour; 0: it does not."""

    moves: list[Move]
    beyond: float


def planned_hour(seed: int, number: int, real_seconds: float, skew: float) -> Hour:
    """The hour of that number, from 0.

    Args:
        seed: Of the day.
        number: Of the hour.
        real_seconds: How long the hour takes. The jumps make up for the rest.
        skew: By how much the product lets clocks differ. The broker's clock stays within a band of that width, as a
            stamp may not step back by more.
    """
    chance = Random(f"hour {number} {seed}")
    events = [(Kind.JUMP, length) for length in _jumps(chance, HOUR_SECONDS - real_seconds)]
    for place, deviation in enumerate(_deviations(chance, skew * TOLERATED)):
        events.insert(chance.randint(place, len(events)), (Kind.STEP, deviation))
    at = chance.randint(0, len(events) // 2)
    # Clocks move while a rebuild runs: the broker's first, over the whole band.
    low = -skew * TOLERATED / 2
    events[at:at] = [(Kind.STEP, -low), (Kind.REBUILD, 0.0), (Kind.STEP, low)]
    cuts = sorted(chance.uniform(0, real_seconds) for _ in events)
    pauses = [cut - before for before, cut in zip([0.0, *cuts], cuts, strict=False)]
    moves = [Move(pause, *event) for pause, event in zip(pauses, events, strict=True)]
    return Hour(moves, _beyond(chance, number))


def _jumps(chance: Random, left: float) -> Iterator[float]:
    while left > 0:
        length = math.exp(chance.uniform(math.log(SHORTEST_JUMP), math.log(LONGEST_JUMP)))
        yield min(length, left)
        left -= length


def _deviations(chance: Random, width: float) -> list[float]:
    return [chance.uniform(-width / 2, width / 2) for _ in range(STEPS)]


def _beyond(chance: Random, number: int) -> float:
    """Back and forward in turn."""
    if number % BEYOND_EVERY:
        return 0.0
    return chance.uniform(*BEYOND) * (-1 if number // BEYOND_EVERY % 2 == 0 else 1)
