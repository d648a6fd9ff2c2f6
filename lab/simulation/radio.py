"""`wifi_sightings`: devices of passers-by, of those visitors who carry one, of the staff, and of what is always on."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from lab.simulation.chance import poisson
from lab.simulation.clock import MINUTE_MS, SECOND_MS, quarter
from lab.simulation.device import Device, Hashing, device
from lab.simulation.equipment import simulated
from lab.simulation.record import Record, Records, Wire
from lab.simulation.roster import Shift
from lab.simulation.shop_day import ShopDay
from lab.simulation.visitors import Visitor

CARRIES = 0.75
"""Of the visitors, so many have a device that is on."""
PASSERS = 2.5
"""Passers-by for one who comes in."""
QUIET = 0.5
"""Passers-by in a window in which nobody comes."""
PRINTERS = 2
ALWAYS_ON_MS = 5 * MINUTE_MS
OUTSIDE, INSIDE = (-78, 6), (-56, 7)
"""Mean and deviation of signal strength, dBm."""


class Radio:
    """The routers of one shop and day."""

    def __init__(self, day: ShopDay) -> None:
        """They hear nothing yet."""
        self._day, self._wire, self._hashing = day, Wire(day, "wifi_sightings"), Hashing(day)
        self._chance = day.chance("radio")
        routers = [sensor.id for sensor in simulated(day.store, "wifi_sightings")]
        self._router = {"inside": routers[0], "outside": routers[-1]}

    def hear(self, people: Sequence[Visitor], shifts: Sequence[Shift]) -> Records:
        """Every sighting of the day."""
        drawn = self._chance
        for each in people:
            if drawn.random() < CARRIES:
                yield from self._visit(each, device(drawn))
        came = Counter(quarter(each.came_ms) for each in people)
        for start in self._day.quarters():
            for _ in range(poisson(drawn, QUIET + PASSERS * came[start])):
                at = start + drawn.randrange(MINUTE_MS * 13)
                passing = _times(drawn, at, at + drawn.randrange(90 * SECOND_MS))
                yield from self._heard(device(drawn), "outside", passing)
        for shift in shifts:
            yield from self._heard(device(drawn), "inside", range(shift.came_ms, shift.left_ms, ALWAYS_ON_MS))
        for _ in range(PRINTERS):
            first = self._day.begins + drawn.randrange(ALWAYS_ON_MS)
            always = range(first, self._day.ends, ALWAYS_ON_MS)
            yield from self._heard(device(drawn, randomized=False), "inside", always)

    def _visit(self, visitor: Visitor, carried: Device) -> Iterator[Record]:
        drawn = self._chance
        approaching = max(visitor.came_ms - drawn.randint(20, 150) * SECOND_MS, self._day.begins)
        yield from self._heard(carried, "outside", _times(drawn, approaching, visitor.came_ms - SECOND_MS))
        yield from self._heard(carried, "inside", _times(drawn, visitor.came_ms + 3 * SECOND_MS, visitor.left_ms))

    def _heard(self, heard: Device, zone: str, moments: Sequence[int] | Iterator[int]) -> Iterator[Record]:
        mean, deviation = INSIDE if zone == "inside" else OUTSIDE
        for at in moments:
            name, salt_id = self._hashing.named(heard, at)
            signal = min(max(round(self._chance.gauss(mean, deviation)), -95), -30)
            said = {"device": name, "salt_id": salt_id, "zone": zone, "signal_dbm": signal}
            yield self._wire.record(at, self._router[zone], {**said, "randomized": heard.randomized})


def _times(drawn: Random, first: int, last: int) -> Iterator[int]:
    """Give the frames of a device between two instants: one every half to whole minute."""
    while first <= last:
        yield first
        first += drawn.randint(30 * SECOND_MS, 60 * SECOND_MS)
