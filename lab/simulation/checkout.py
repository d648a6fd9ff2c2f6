"""The checkout: who waits in which queue, from when to when. First come, first served, by one till or several.

It is worked out from the receipts backwards: a receipt is printed as its service ends. With k tills a service can begin
once the k-th service before it has ended, so with starts and ends both in order no till ever serves two at a time.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lab.simulation.chance import chance
from lab.simulation.clock import MINUTE_MS, SECOND_MS
from lab.simulation.equipment import simulated
from lab.simulation.shop_day import ShopDay

MOST_TILLS = 3
PATIENCE_MS = (20 * SECOND_MS, 5 * MINUTE_MS)
"""Nobody gives up sooner, or later."""
GIVES_UP = 0.1
"""Of the gaps in a line that somebody could have given up in, so many had somebody who did."""


class Turn(NamedTuple):
    """One person in one queue. `started_ms` is None for who gave up; `ended_ms`: served, or gone."""

    queue: str
    sensor: str
    joined_ms: int
    started_ms: int | None
    ended_ms: int


def checkout(day: ShopDay, receipts: Sequence[int]) -> Sequence[Turn]:
    """Give a turn to every receipt (sorted instants), and the turns of who gave up, by when they joined."""
    watched = [(sensor.place or "Q1", sensor.id) for sensor in simulated(day.store, "queue_events")] or [("Q1", "")]
    drawn = day.chance("queues")
    chosen = [drawn.randrange(len(watched)) for _ in receipts]
    turns = []
    for number, (queue, sensor) in enumerate(watched):
        served = _served(day, queue, sensor, [at for at, mine in zip(receipts, chosen, strict=True) if mine == number])
        turns += [*served, *_gave_up(day, served)]
    return sorted(turns, key=lambda turn: (turn.joined_ms, turn.queue, turn.ended_ms))


def _served(day: ShopDay, queue: str, sensor: str, receipts: Sequence[int]) -> list[Turn]:
    tills = chance(day.seed, day.store.id, queue, "tills").randint(1, MOST_TILLS)
    drawn = day.chance(f"service {queue}")
    turns: list[Turn] = []
    for number, ended in enumerate(receipts):
        opened = min(day.period(ended)[0], ended)
        free = turns[number - tills].ended_ms if number >= tills else opened
        before = turns[-1] if turns else Turn(queue, sensor, opened, opened, opened)
        begun = max(ended - drawn.randint(30, 150) * SECOND_MS, opened)
        started = max(begun, free, before.started_ms or opened)
        waits = drawn.randint(3, 25) * SECOND_MS + drawn.randrange(SECOND_MS)
        if started > begun:  # every till was busy
            waits += min(round(drawn.expovariate(1 / MINUTE_MS)), 6 * MINUTE_MS)
        joined = min(max(started - waits, opened, before.joined_ms + 1), started)
        turns.append(Turn(queue, sensor, joined, started, ended))
    return turns


def _gave_up(day: ShopDay, served: Sequence[Turn]) -> list[Turn]:
    """Let some leave the line: each before the next who joined after them is served, so nobody is overtaken."""
    gone = []
    for before, after in pairwise(served):
        drawn = day.chance(f"patience {before.queue} {before.ended_ms} {after.ended_ms}")
        joined, stands = before.joined_ms + 1, before.started_ms or 0
        latest = min(after.started_ms or 0, joined + PATIENCE_MS[1])
        is_room = joined < min(stands, after.joined_ms) and latest - joined > PATIENCE_MS[0]
        if is_room and drawn.random() < GIVES_UP:
            ended = drawn.randint(joined + PATIENCE_MS[0], latest)
            gone.append(Turn(before.queue, before.sensor, joined, None, ended))
    return gone
