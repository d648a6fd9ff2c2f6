"""`wifi_sightings`: devices of passers-by, visitors, staff and printers, each under a keyed hash that changes daily."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hmac import digest
from random import Random

from lab.simulation.records import Record, Records, Wire
from lab.simulation.shop_day import MINUTE_MS, SECOND_MS, ShopDay, poisson, quarter
from lab.simulation.staff import Shift
from lab.simulation.stores import simulated
from lab.simulation.visitors import Visitor
from master_dataset.registry.stores import business_date

RANDOMIZED = 0.7
"""Of the devices, so many make up an address of their own."""
HASH_BYTES = 16
LOCAL, UNIVERSAL = 0x02, 0xFC
"""Bits of the first byte of an address: made up by the device; and all bits that say neither that nor `group`."""


@dataclass(frozen=True)
class Device:
    """`address`: of its hardware, six bytes; it never gets into a record."""

    address: bytes
    randomized: bool


def device(drawn: Random, *, randomized: bool | None = None) -> Device:
    """Draw a device. `randomized` as it says, or by chance."""
    address = bytearray(drawn.randbytes(6))
    made_up = drawn.random() < RANDOMIZED if randomized is None else randomized
    address[0] = (address[0] & UNIVERSAL) | (LOCAL if made_up else 0)
    return Device(bytes(address), made_up)


@dataclass(frozen=True)
class Hashing:
    """The edge of one shop and day.

    A real edge draws its salt at random, keeps it in memory only and destroys it. This one derives it from the seed,
    so that the same seed gives the same bytes; it protects nobody, and there is nobody to protect.
    """

    day: ShopDay

    def named(self, device: Device, at_ms: int) -> tuple[str, str]:
        """Give the device's name at that instant, and which salt it was made with."""
        salt_id = business_date(self.day.store.terms.business_day(at_ms)).isoformat()
        return _hashed(self.day.seed, self.day.store.id, salt_id, device.address), salt_id


@lru_cache(maxsize=4096)
def _hashed(seed: str, store: str, salt_id: str, address: bytes) -> str:
    salt = digest(seed.encode(), f"salt\0{store}\0{salt_id}".encode(), "sha256")
    return digest(salt, address, "sha256")[:HASH_BYTES].hex()


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
