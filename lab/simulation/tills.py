"""Tills."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

from lab.simulation.records import Records, Wire
from lab.simulation.shop_day import MINUTE_MS, QUARTER_MS, SECOND_MS, ShopDay, chance, poisson, written
from lab.simulation.stores import simulated
from lab.simulation.weather import weather

BY_HOUR = (
    0.1,
    0.1,
    0.1,
    0.1,
    0.1,
    0.2,
    0.4,
    0.6,
    0.7,
    0.8,
    0.9,
    1,
    1,
    0.8,
    0.7,
    0.8,
    1,
    1.2,
    1.1,
    0.8,
    0.5,
    0.3,
    0.2,
    0.1,
)
BY_WEEKDAY = (0.85, 0.85, 0.9, 1.0, 1.25, 1.4, 0.75)
WARMING_UP_MS = 10 * MINUTE_MS
"""Nobody has paid so soon after the doors opened."""


def demand(day: ShopDay) -> Sequence[int]:
    """Give the instants of the day's receipts, sorted."""
    usual = chance(day.seed, day.store.id, "size").uniform(2, 5)  # receipts in a quarter of a usual hour
    drawn = day.chance("demand")
    found = []
    for opens, closes in day.open:
        for start in range(opens, closes, QUARTER_MS):
            there = day.local(start)
            mean = usual * BY_HOUR[there.hour] * BY_WEEKDAY[there.weekday()] * weather(day, start).appeal
            paid = (start + drawn.randrange(QUARTER_MS) for _ in range(poisson(drawn, mean)))
            found += [at for at in paid if at >= opens + WARMING_UP_MS]
    return sorted(found)


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


TRACK_BITS = 48
STEP = {"join": 1, "service_start": -1, "abandon": -1, "leave": 0}


class Change(NamedTuple):
    """A kind of event at an instant, of one turn with its track. They are sorted: at one instant joins come first."""

    at_ms: int
    order: int
    kind: str
    track: str
    turn: Turn


def queue_events(day: ShopDay, turns: Sequence[Turn]) -> Records:
    """Tell all turns, queue by queue."""
    wire, drawn = Wire(day, "queue_events"), day.chance("tracks of queues")
    for _, of_queue in groupby(sorted(turns, key=attrgetter("queue")), key=attrgetter("queue")):
        changes = [each for turn in of_queue for each in _changes(turn, f"{drawn.getrandbits(TRACK_BITS):012x}")]
        length = 0
        for change in sorted(changes):
            length += STEP[change.kind]
            said = {"queue": change.turn.queue, "track": change.track, "kind": change.kind, "length_after": length}
            yield wire.record(change.at_ms, change.turn.sensor, {**said, **_starts(change)})


def _changes(turn: Turn, track: str) -> list[Change]:
    moments = {"join": turn.joined_ms}
    if turn.started_ms is None:
        moments["abandon"] = turn.ended_ms
    else:
        moments |= {"service_start": turn.started_ms, "leave": turn.ended_ms}
    return [Change(at, list(STEP).index(kind), kind, track, turn) for kind, at in moments.items()]


def _starts(change: Change) -> dict[str, Any]:
    starts = {} if change.kind == "join" else {"joined_at": written(change.turn.joined_ms)}
    if change.kind == "leave" and change.turn.started_ms is not None:
        starts["service_started_at"] = written(change.turn.started_ms)
    return starts


GOODS = (
    ("Milk 1 l", 109),
    ("Bread 500 g", 189),
    ("Butter 250 g", 259),
    ("Coffee 250 g", 499),
    ("Eggs 10", 329),
    ("Pasta 500 g", 119),
    ("Tomatoes", 289),
    ("Apples", 199),
    ("Chocolate", 149),
    ("Water 1.5 l", 69),
    ("Cheese 300 g", 379),
    ("Yoghurt", 79),
    ("Tea 40 g", 229),
    ("Soap", 139),
    ("Olive oil 0.5 l", 799),
)
"""Title, and price in hundredths."""
WEIGHED = ("Tomatoes", "Apples")
TILLS = 3
MOST_LINES = 8
RETURNS = 0.02
"""Of the receipts."""
PER_DAY = 100_000


def pos_transactions(day: ShopDay, receipts: Sequence[int]) -> Records:
    """Print a receipt at each of these instants."""
    wire, drawn = Wire(day, "pos_transactions"), day.chance("baskets")
    first = day.begins // 86_400_000 * PER_DAY
    for number, at in enumerate(receipts):
        lines = [_line(drawn) for _ in range(min(1 + round(drawn.expovariate(0.5)), MOST_LINES))]
        if drawn.random() < RETURNS:
            lines = [{**lines[0], "amount": -lines[0]["amount"]}]
        said = {"transaction_id": first + number, "vendor_fiscal_module": 1 + number % TILLS, "transactions": lines}
        yield wire.record(at, "", said)


def _line(drawn: Random) -> dict[str, Any]:
    number = drawn.randrange(len(GOODS))
    title, hundredths = GOODS[number]
    amount = drawn.randint(150, 2500) / 1000 if title in WEIGHED else drawn.choices((1, 2, 3), (8, 3, 1))[0]
    return {"title": title, "price": hundredths / 100, "amount": amount, "sku": f"sim-{1000 + number}"}
