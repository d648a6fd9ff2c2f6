"""`zone_presence`: the parts of the floor that visitors walk through between the door and the queue."""

from collections.abc import Sequence

from lab.simulation.clock import SECOND_MS, written
from lab.simulation.equipment import simulated
from lab.simulation.record import Records, Wire
from lab.simulation.shop_day import ShopDay
from lab.simulation.visitors import Visitor

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
