"""`people_counts` and `demographics`: cameras over doors, a window at a time. Nobody is a zero, and is said."""

from collections import Counter
from collections.abc import Sequence

from lab.simulation.clock import QUARTER_MS, quarter
from lab.simulation.equipment import doors, simulated
from lab.simulation.record import Records, Wire
from lab.simulation.roster import Shift
from lab.simulation.shop_day import ShopDay
from lab.simulation.visitors import Visitor

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
