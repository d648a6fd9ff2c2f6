"""Tills: receipts by hour, weekday and weather, the queues before them, and what a camera over a queue reports."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

from lab.simulation.records import RecordFactory, Records
from lab.simulation.store_day import MINUTE_MS, QUARTER_MS, SECOND_MS, StoreDay, format_instant, poisson, random_stream
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
"""No receipt is printed so soon after opening."""


def receipt_times(day: StoreDay) -> Sequence[int]:
    """Return the times of the day's receipts, sorted."""
    usual = random_stream(day.seed, day.store.id, "size").uniform(2, 5)  # receipts in a quarter of an average hour
    rng = day.rng("demand")
    found = []
    for opens, closes in day.open:
        for start in range(opens, closes, QUARTER_MS):
            there = day.local(start)
            mean = usual * BY_HOUR[there.hour] * BY_WEEKDAY[there.weekday()] * weather(day, start).appeal
            paid = (start + rng.randrange(QUARTER_MS) for _ in range(poisson(rng, mean)))
            found += [at for at in paid if at >= opens + WARMING_UP_MS]
    return sorted(found)


MOST_TILLS = 3
PATIENCE_MS = (20 * SECOND_MS, 5 * MINUTE_MS)
"""The shortest and longest wait of a visitor who gives up."""
GIVES_UP = 0.1
"""Share of opportunities to leave a queue that are taken."""


class QueueVisit(NamedTuple):
    """One person in one queue. `started_ms`: None for a person who gave up; `ended_ms`: served, or left."""

    queue: str
    sensor: str
    joined_ms: int
    started_ms: int | None
    ended_ms: int


def queue_visits(day: StoreDay, receipts: Sequence[int]) -> Sequence[QueueVisit]:
    """Return a queue visit for every receipt (sorted times) and for those who gave up, by time of joining.

    It is derived from the receipts backwards: a receipt is printed when its service ends. With k tills, a service can
    start once the k-th service before it has ended, so if starts and ends are in order, no till serves two at once.
    """
    watched = [(sensor.place or "Q1", sensor.id) for sensor in simulated(day.store, "queue_events")] or [("Q1", "")]
    rng = day.rng("queues")
    chosen = [rng.randrange(len(watched)) for _ in receipts]
    queue_visits = []
    for number, (queue, sensor) in enumerate(watched):
        served = _served(day, queue, sensor, [at for at, mine in zip(receipts, chosen, strict=True) if mine == number])
        queue_visits += [*served, *_gave_up(day, served)]
    return sorted(queue_visits, key=lambda visit: (visit.joined_ms, visit.queue, visit.ended_ms))


def _served(day: StoreDay, queue: str, sensor: str, receipts: Sequence[int]) -> list[QueueVisit]:
    tills = random_stream(day.seed, day.store.id, queue, "tills").randint(1, MOST_TILLS)
    rng = day.rng(f"service {queue}")
    queue_visits: list[QueueVisit] = []
    for number, ended in enumerate(receipts):
        opened = min(day.period(ended)[0], ended)
        free = queue_visits[number - tills].ended_ms if number >= tills else opened
        before = queue_visits[-1] if queue_visits else QueueVisit(queue, sensor, opened, opened, opened)
        begun = max(ended - rng.randint(30, 150) * SECOND_MS, opened)
        started = max(begun, free, before.started_ms or opened)
        waits = rng.randint(3, 25) * SECOND_MS + rng.randrange(SECOND_MS)
        if started > begun:  # all tills were busy
            waits += min(round(rng.expovariate(1 / MINUTE_MS)), 6 * MINUTE_MS)
        joined = min(max(started - waits, opened, before.joined_ms + 1), started)
        queue_visits.append(QueueVisit(queue, sensor, joined, started, ended))
    return queue_visits


def _gave_up(day: StoreDay, served: Sequence[QueueVisit]) -> list[QueueVisit]:
    """Let some leave the queue, each before the next person is served, so that nobody is overtaken."""
    gone = []
    for before, after in pairwise(served):
        rng = day.rng(f"patience {before.queue} {before.ended_ms} {after.ended_ms}")
        joined, stands = before.joined_ms + 1, before.started_ms or 0
        latest = min(after.started_ms or 0, joined + PATIENCE_MS[1])
        is_room = joined < min(stands, after.joined_ms) and latest - joined > PATIENCE_MS[0]
        if is_room and rng.random() < GIVES_UP:
            ended = rng.randint(joined + PATIENCE_MS[0], latest)
            gone.append(QueueVisit(before.queue, before.sensor, joined, None, ended))
    return gone


TRACK_BITS = 48
STEP = {"join": 1, "service_start": -1, "abandon": -1, "leave": 0}


class QueueChange(NamedTuple):
    """One event of a queue visit with its track. Changes are sorted; at the same instant, joins come first."""

    at_ms: int
    order: int
    kind: str
    track: str
    visit: QueueVisit


def queue_events(day: StoreDay, queue_visits: Sequence[QueueVisit]) -> Records:
    """Report all queue visits, queue by queue. `length_after` counts those who wait."""
    wire, rng = RecordFactory(day, "queue_events"), day.rng("tracks of queues")
    for _, of_queue in groupby(sorted(queue_visits, key=attrgetter("queue")), key=attrgetter("queue")):
        changes = [each for visit in of_queue for each in _changes(visit, f"{rng.getrandbits(TRACK_BITS):012x}")]
        length = 0
        for change in sorted(changes):
            length += STEP[change.kind]
            said = {"queue": change.visit.queue, "track": change.track, "kind": change.kind, "length_after": length}
            yield wire.record(change.at_ms, change.visit.sensor, {**said, **_starts(change)})


def _changes(visit: QueueVisit, track: str) -> list[QueueChange]:
    moments = {"join": visit.joined_ms}
    if visit.started_ms is None:
        moments["abandon"] = visit.ended_ms
    else:
        moments |= {"service_start": visit.started_ms, "leave": visit.ended_ms}
    return [QueueChange(at, list(STEP).index(kind), kind, track, visit) for kind, at in moments.items()]


def _starts(change: QueueChange) -> dict[str, Any]:
    starts = {} if change.kind == "join" else {"joined_at": format_instant(change.visit.joined_ms)}
    if change.kind == "leave" and change.visit.started_ms is not None:
        starts["service_started_at"] = format_instant(change.visit.started_ms)
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
"""Share of the receipts."""
DISCOUNTED, OFF = 0.12, (0.1, 0.2, 0.25)
"""Share of the lines, and of their price."""
PAID_BY, VOUCHERS = (("card", "cash"), (62, 38)), 0.04
"""Types and weights of payments; share of the receipts that a voucher pays half of."""
PER_DAY = 100_000


def pos_transactions(day: StoreDay, receipts: Sequence[int]) -> Records:
    """Generate a receipt at each of these times, for a store without real ones."""
    wire, rng, till = RecordFactory(day, "pos_transactions"), day.rng("baskets"), day.rng("payments")
    first = day.begins // 86_400_000 * PER_DAY
    for number, at in enumerate(receipts):
        lines = [_line(rng) for _ in range(min(1 + round(rng.expovariate(0.5)), MOST_LINES))]
        if rng.random() < RETURNS:
            lines = [{**lines[0], "amount": -lines[0]["amount"]}]
        due = 0
        for line in lines:
            full = round(100 * line["price"] * line["amount"])
            discount = round(full * till.choice(OFF)) if till.random() < DISCOUNTED else 0
            line["discount"] = discount / 100
            due += full - discount
        said = {"transaction_id": first + number, "vendor_fiscal_module": 1 + number % TILLS, "transactions": lines}
        yield wire.record(at, "", said | {"payments": _payments(till, due)})


def _line(rng: Random) -> dict[str, Any]:
    number = rng.randrange(len(GOODS))
    title, hundredths = GOODS[number]
    amount = rng.randint(150, 2500) / 1000 if title in WEIGHED else rng.choices((1, 2, 3), (8, 3, 1))[0]
    return {"title": title, "price": hundredths / 100, "amount": amount, "sku": f"sim-{1000 + number}"}


def _payments(till: Random, due: int) -> list[dict[str, Any]]:
    """How hundredths are paid: at once, or with a voucher for a part of them."""
    part = due // 2 if due > 0 and till.random() < VOUCHERS else 0
    rest = {"type": till.choices(*PAID_BY)[0], "amount": (due - part) / 100}
    return [{"type": "voucher", "amount": part / 100}, rest] if part else [rest]
