"""Visitors of a day and what door cameras and zone sensors report about them."""

from collections import Counter
from collections.abc import Sequence
from math import ceil
from random import Random
from typing import NamedTuple

from lab.simulation.records import RecordFactory, Records
from lab.simulation.staff import Shift
from lab.simulation.store_day import (
    MINUTE_MS,
    QUARTER_MS,
    SECOND_MS,
    StoreDay,
    format_instant,
    random_stream,
    window_start,
)
from lab.simulation.stores import doors, simulated
from lab.simulation.tills import QueueVisit
from master_dataset.sources.demographics import AGE_BANDS, GENDERS

CONVERSION = (0.25, 0.5)
"""Receipts per visitor on a day: lowest and highest."""
USUAL_CONVERSION, DEVIATION = (0.3, 0.45), 0.03
"""What is usual in a store, and by how much its days differ."""
MOST_CONVERSION = 0.6
"""The highest in any window, so that in none of them more pay than come in."""
PARTIES = (0.62, 0.26, 0.08, 0.04)
"""Shares of parties of one, two, three and four."""
AGES = (0.06, 0.12, 0.2, 0.18, 0.15, 0.11, 0.08, 0.1)
SEXES = (0.5, 0.42, 0.08)
IDLE = 8
"""At most so many come in on a day without receipts."""


class Visitor(NamedTuple):
    """`browsed_ms`: end of browsing; then they queue or leave. `leads`: with whom the group is counted."""

    came_ms: int
    browsed_ms: int
    left_ms: int
    way_in: str
    way_out: str
    leads: bool
    age_band: str
    gender: str


class Stay(NamedTuple):
    """When a party comes in, ends browsing and leaves."""

    came_ms: int
    browsed_ms: int
    left_ms: int


def visitors(day: StoreDay, receipts: Sequence[int], queue_visits: Sequence[QueueVisit]) -> Sequence[Visitor]:
    """Return everybody who came in, by time: one for each queue visit, and others who buy nothing.

    Who pays in a window may have come in an earlier one. So as many others come in each window as it takes to keep its
    own conversion plausible.
    """
    rng = day.rng("visitors")
    wanted = -int(-len(receipts) // _conversion(day, rng))
    if not queue_visits:
        wanted = rng.randint(0, IDLE) if day.open else 0
    stays = [_of_turn(day, rng, visit) for visit in queue_visits]
    missing = _missing(receipts, stays)
    spare, people = max(wanted - len(stays) - missing.total(), 0), list[Visitor]()
    for stay in stays:
        size = min(_size(rng), spare + 1)
        spare -= size - 1
        people += _party(day, rng, stay, size)
    for start in missing.elements():
        people += _party(day, rng, _looking(day, rng, start), 1)
    while spare > 0:
        size = min(_size(rng), spare)
        spare -= size
        people += _party(day, rng, _idle(day, rng, queue_visits), size)
    return sorted(people)


def _conversion(day: StoreDay, rng: Random) -> float:
    """Draw the conversion of a day around what is usual in the store."""
    usual = random_stream(day.seed, day.store.id, "conversion").uniform(*USUAL_CONVERSION)
    return min(max(rng.gauss(usual, DEVIATION), CONVERSION[0]), CONVERSION[1])


def _missing(receipts: Sequence[int], stays: Sequence[Stay]) -> Counter[int]:
    """Count by window who must come in besides those who queue."""
    came = Counter(window_start(stay.came_ms) for stay in stays)
    paid = Counter(map(window_start, receipts))
    return +Counter({start: ceil(number / MOST_CONVERSION) - came[start] for start, number in paid.items()})


def _looking(day: StoreDay, rng: Random, start: int) -> Stay:
    """They come in this window."""
    opens, closes = next(
        (span for span in day.open if span[0] < start + QUARTER_MS and start < span[1]), (start, start + QUARTER_MS)
    )
    came = rng.randrange(max(opens, start), min(closes, start + QUARTER_MS))
    return _staying(day, rng, came)


def _staying(day: StoreDay, rng: Random, came: int) -> Stay:
    stay = round(min(rng.lognormvariate(1.9, 0.8), 60) * MINUTE_MS)
    left = max(came, min(came + stay, day.closing(came) - 1))
    return Stay(came, left, left)


def _of_turn(day: StoreDay, rng: Random, visit: QueueVisit) -> Stay:
    shopping = round(min(rng.lognormvariate(2.5, 0.6), 70) * MINUTE_MS)
    opened = min(day.period(visit.joined_ms)[0], visit.joined_ms)
    left = max(visit.ended_ms, min(visit.ended_ms + rng.randint(5, 60) * SECOND_MS, day.closing(visit.ended_ms) - 1))
    return Stay(max(opened, visit.joined_ms - shopping), visit.joined_ms, left)


def _idle(day: StoreDay, rng: Random, queue_visits: Sequence[QueueVisit]) -> Stay:
    """They come when others come."""
    if queue_visits:
        like = rng.choice(queue_visits).joined_ms
        opens, closes = day.period(like)
        came = round(rng.gauss(like - 12 * MINUTE_MS, 15 * MINUTE_MS))
    else:
        opens, closes = rng.choice(day.open)
        came = rng.randrange(opens, closes)
    came = min(max(came, opens + rng.randrange(MINUTE_MS)), closes - 1)
    return _staying(day, rng, came)


def _party(day: StoreDay, rng: Random, stay: Stay, size: int) -> list[Visitor]:
    lines = doors(day.store)
    weights = [1 / number for number in range(1, len(lines) + 1)]
    way_in, way_out = rng.choices(lines, weights, k=2)
    found = []
    for member in range(size):
        came = min(stay.came_ms + member * rng.randint(300, 1500), stay.left_ms)
        left = max(came, stay.left_ms - member * rng.randint(0, 1500))
        browsed = min(max(came, stay.browsed_ms), left)
        age, gender = rng.choices(AGE_BANDS, AGES)[0], rng.choices(GENDERS, SEXES)[0]
        found.append(Visitor(came, browsed, left, way_in, way_out, not member, age, gender))
    return found


def _size(rng: Random) -> int:
    return rng.choices((1, 2, 3, 4), PARTIES)[0]


COUNTED = ("people_in", "people_out", "group_in", "group_out", "staff_in", "staff_out")


def people_counts(day: StoreDay, people: Sequence[Visitor], shifts: Sequence[Shift]) -> Records:
    """Count visitors, groups and staff at every door line and window. A group is counted with its leader."""
    seen: Counter[tuple[str, str, int]] = Counter()
    for each in people:
        for way, line, at in (("in", each.way_in, each.came_ms), ("out", each.way_out, each.left_ms)):
            seen[f"people_{way}", line, window_start(at)] += 1
            seen[f"group_{way}", line, window_start(at)] += each.leads
    staff_door = doors(day.store)[0]
    for shift in shifts:
        seen["staff_in", staff_door, window_start(shift.came_ms)] += 1
        seen["staff_out", staff_door, window_start(shift.left_ms)] += 1
    wire = RecordFactory(day, "people_counts")
    for start in day.quarters():
        for sensor, line in zip(simulated(day.store, "people_counts"), doors(day.store), strict=True):
            counts = {name: seen[name, line, start] for name in COUNTED}
            known = start + QUARTER_MS
            yield wire.record(start, sensor.id, {"line": line, "interval_ms": QUARTER_MS, **counts}, known)


def demographics(day: StoreDay, people: Sequence[Visitor]) -> Records:
    """Estimate everybody who came in; an unseen face is `unknown`, so the sum equals `people_in`."""
    watching = simulated(day.store, "demographics")
    of_line = {line: next((each for each in watching if each.place == line), watching[0]) for line in doors(day.store)}
    seen = Counter((window_start(each.came_ms), of_line[each.way_in].id, each.age_band, each.gender) for each in people)
    wire = RecordFactory(day, "demographics")
    for (start, sensor, band, gender), number in sorted(seen.items()):
        said = {"interval_ms": QUARTER_MS, "age_band": band, "gender": gender, "people": number}
        yield wire.record(start, sensor, said, start + QUARTER_MS)


TRACK_BITS = 48
MOST_ZONES = 4
SHORTEST_MS = 2 * SECOND_MS


def zone_presence(day: StoreDay, people: Sequence[Visitor]) -> Records:
    """Report every entry to and exit from a zone. A track is random and belongs to one visitor."""
    wire, rng = RecordFactory(day, "zone_presence"), day.rng("zones")
    watching = simulated(day.store, "zone_presence")
    zones = [zone.id for zone in day.store.zones]
    for each in people if zones else ():
        track, at = f"{rng.getrandbits(TRACK_BITS):012x}", each.came_ms
        for _ in range(rng.randint(1, MOST_ZONES)):
            zone = rng.choice(zones)
            sensor = next((one for one in watching if one.place == zone), watching[0]).id
            entered = at + rng.randint(1, 45) * SECOND_MS
            left = min(entered + round(rng.lognormvariate(3.6, 1.0) * SECOND_MS), each.browsed_ms)
            if left - entered < SHORTEST_MS:
                break
            said = {"zone": zone, "track": track}
            yield wire.record(entered, sensor, {**said, "kind": "enter"})
            yield wire.record(left, sensor, {**said, "kind": "exit", "entered_at": format_instant(entered)})
            at = left
