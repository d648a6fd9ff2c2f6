"""Visitors of a day and what door cameras and zone sensors report about them."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from lab.simulation.records import Records, Wire
from lab.simulation.shop_day import MINUTE_MS, QUARTER_MS, SECOND_MS, ShopDay, quarter, written
from lab.simulation.staff import Shift
from lab.simulation.stores import doors, simulated
from lab.simulation.tills import Turn
from master_dataset.sources.demographics import AGE_BANDS, GENDERS

CONVERSION = (0.25, 0.5)
"""Receipts by visitors of a day: the shop's own lies in between."""
PARTIES = (0.62, 0.26, 0.08, 0.04)
"""How many come alone, as two, three, four."""
AGES = (0.06, 0.12, 0.2, 0.18, 0.15, 0.11, 0.08, 0.1)
SEXES = (0.5, 0.42, 0.08)
IDLE = 8
"""So many look in at most on a day without any receipt."""


class Visitor(NamedTuple):
    """`browsed_ms`: until when they look around, then they queue or go. `leads`: the one of a group that counts it."""

    came_ms: int
    browsed_ms: int
    left_ms: int
    way_in: str
    way_out: str
    leads: bool
    age_band: str
    gender: str


class Stay(NamedTuple):
    """When a party comes, stops to look around and leaves."""

    came_ms: int
    browsed_ms: int
    left_ms: int


def visitors(day: ShopDay, turns: Sequence[Turn]) -> Sequence[Visitor]:
    """Everybody who came in, by when. Of each turn somebody stands in it; the others buy nothing."""
    drawn = day.chance("visitors")
    receipts = sum(turn.started_ms is not None for turn in turns)
    wanted = -int(-receipts // drawn.uniform(*CONVERSION))
    if not turns:
        wanted = drawn.randint(0, IDLE) if day.open else 0
    spare, people = max(wanted - len(turns), 0), list[Visitor]()
    for turn in turns:
        size = min(_size(drawn), spare + 1)
        spare -= size - 1
        people += _party(day, drawn, _of_turn(day, drawn, turn), size)
    while spare > 0:
        size = min(_size(drawn), spare)
        spare -= size
        people += _party(day, drawn, _idle(day, drawn, turns), size)
    return sorted(people)


def _of_turn(day: ShopDay, drawn: Random, turn: Turn) -> Stay:
    shopping = round(min(drawn.lognormvariate(2.5, 0.6), 70) * MINUTE_MS)
    opened = min(day.period(turn.joined_ms)[0], turn.joined_ms)
    left = min(turn.ended_ms + drawn.randint(5, 60) * SECOND_MS, day.ends - 1)
    return Stay(max(opened, turn.joined_ms - shopping), turn.joined_ms, left)


def _idle(day: ShopDay, drawn: Random, turns: Sequence[Turn]) -> Stay:
    """They come when the others come."""
    if turns:
        like = drawn.choice(turns).joined_ms
        opens, closes = day.period(like)
        came = round(drawn.gauss(like - 12 * MINUTE_MS, 15 * MINUTE_MS))
    else:
        opens, closes = drawn.choice(day.open)
        came = drawn.randrange(opens, closes)
    came = min(max(came, opens + drawn.randrange(MINUTE_MS)), closes - 1)
    stay = round(min(drawn.lognormvariate(1.9, 0.8), 60) * MINUTE_MS)
    left = max(came, min(came + stay, day.closing(came) - 1))
    return Stay(came, left, left)


def _party(day: ShopDay, drawn: Random, stay: Stay, size: int) -> list[Visitor]:
    lines = doors(day.store)
    weights = [1 / number for number in range(1, len(lines) + 1)]
    way_in, way_out = drawn.choices(lines, weights, k=2)
    found = []
    for member in range(size):
        came = min(stay.came_ms + member * drawn.randint(300, 1500), stay.left_ms)
        left = max(came, stay.left_ms - member * drawn.randint(0, 1500))
        browsed = min(max(came, stay.browsed_ms), left)
        age, gender = drawn.choices(AGE_BANDS, AGES)[0], drawn.choices(GENDERS, SEXES)[0]
        found.append(Visitor(came, browsed, left, way_in, way_out, not member, age, gender))
    return found


def _size(drawn: Random) -> int:
    return drawn.choices((1, 2, 3, 4), PARTIES)[0]


COUNTED = ("people_in", "people_out", "group_in", "group_out", "staff_in", "staff_out")


def people_counts(day: ShopDay, people: Sequence[Visitor], shifts: Sequence[Shift]) -> Records:
    """Count visitors, groups and staff of every door line. A group is counted with the one who leads it."""
    seen: Counter[tuple[str, str, int]] = Counter()
    for each in people:
        for way, line, at in (("in", each.way_in, each.came_ms), ("out", each.way_out, each.left_ms)):
            seen[f"people_{way}", line, quarter(at)] += 1
            seen[f"group_{way}", line, quarter(at)] += each.leads
    staff_door = doors(day.store)[0]
    for shift in shifts:
        seen["staff_in", staff_door, quarter(shift.came_ms)] += 1
        seen["staff_out", staff_door, quarter(shift.left_ms)] += 1
    wire = Wire(day, "people_counts")
    for start in day.quarters():
        for sensor, line in zip(simulated(day.store, "people_counts"), doors(day.store), strict=True):
            counts = {name: seen[name, line, start] for name in COUNTED}
            known = start + QUARTER_MS
            yield wire.record(start, sensor.id, {"line": line, "interval_ms": QUARTER_MS, **counts}, known)


def demographics(day: ShopDay, people: Sequence[Visitor]) -> Records:
    """Estimate everybody who came in; a face that was not seen is `unknown`, so the sum is that of `people_in`."""
    watching = simulated(day.store, "demographics")
    of_line = {line: next((each for each in watching if each.place == line), watching[0]) for line in doors(day.store)}
    seen = Counter((quarter(each.came_ms), of_line[each.way_in].id, each.age_band, each.gender) for each in people)
    wire = Wire(day, "demographics")
    for (start, sensor, band, gender), number in sorted(seen.items()):
        said = {"interval_ms": QUARTER_MS, "age_band": band, "gender": gender, "people": number}
        yield wire.record(start, sensor, said, start + QUARTER_MS)


TRACK_BITS = 48
MOST_ZONES = 4
SHORTEST_MS = 2 * SECOND_MS


def zone_presence(day: ShopDay, people: Sequence[Visitor]) -> Records:
    """Tell every entry and exit. A track is random and is that of one visitor."""
    wire, drawn = Wire(day, "zone_presence"), day.chance("zones")
    watching = simulated(day.store, "zone_presence")
    zones = [zone.id for zone in day.store.zones]
    for each in people if zones else ():
        track, at = f"{drawn.getrandbits(TRACK_BITS):012x}", each.came_ms
        for _ in range(drawn.randint(1, MOST_ZONES)):
            zone = drawn.choice(zones)
            sensor = next((one for one in watching if one.place == zone), watching[0]).id
            entered = at + drawn.randint(1, 45) * SECOND_MS
            left = min(entered + round(drawn.lognormvariate(3.6, 1.0) * SECOND_MS), each.browsed_ms)
            if left - entered < SHORTEST_MS:
                break
            said = {"zone": zone, "track": track}
            yield wire.record(entered, sensor, {**said, "kind": "enter"})
            yield wire.record(left, sensor, {**said, "kind": "exit", "entered_at": written(entered)})
            at = left
