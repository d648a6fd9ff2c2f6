"""`wifi_sightings`: devices of passers-by, visitors, staff and printers, each under a keyed hash that changes daily."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hmac import digest
from random import Random

from lab.simulation.records import RecordFactory, Records, SensorRecord
from lab.simulation.staff import Shift
from lab.simulation.store_day import MINUTE_MS, SECOND_MS, StoreDay, poisson, window_start
from lab.simulation.stores import simulated
from lab.simulation.visitors import Visitor
from master_dataset.registry.stores import business_date

RANDOMIZED = 0.7
"""Share of the devices that use a random address."""
HASH_BYTES = 16
LOCAL, UNIVERSAL = 0x02, 0xFC
"""Bits of the first byte of an address: locally administered; and all bits except that one and `group`."""


@dataclass(frozen=True)
class Device:
    """`address`: six bytes, which are never written into a record."""

    address: bytes
    randomized: bool


def random_device(rng: Random, *, randomized: bool | None = None) -> Device:
    """Draw a device. `randomized`: None draws that too."""
    address = bytearray(rng.randbytes(6))
    made_up = rng.random() < RANDOMIZED if randomized is None else randomized
    address[0] = (address[0] & UNIVERSAL) | (LOCAL if made_up else 0)
    return Device(bytes(address), made_up)


@dataclass(frozen=True)
class DeviceHasher:
    """Hashes the devices of one store and day, with a salt for each business day.

    A real edge device draws its salt at random, keeps it in memory only and destroys it. This one derives it from the
    seed, so that the same seed gives the same bytes; there are no people to protect.
    """

    day: StoreDay

    def named(self, device: Device, at_ms: int) -> tuple[str, str]:
        """Return the hash of a device at that time, and the id of its salt."""
        salt_id = business_date(self.day.store.terms.business_day(at_ms)).isoformat()
        return _hashed(self.day.seed, self.day.store.id, salt_id, device.address), salt_id


@lru_cache(maxsize=4096)
def _hashed(seed: str, store: str, salt_id: str, address: bytes) -> str:
    salt = digest(seed.encode(), f"salt\0{store}\0{salt_id}".encode(), "sha256")
    return digest(salt, address, "sha256")[:HASH_BYTES].hex()


CARRIES = 0.75
"""Share of the visitors with a device that is on."""
PASSERS = 2.5
"""Passers-by per visitor who comes in."""
QUIET = 0.5
"""Passers-by in a window without visitors."""
PRINTERS = 2
ALWAYS_ON_MS = 5 * MINUTE_MS
OUTSIDE, INSIDE = (-78, 6), (-56, 7)
"""Mean and standard deviation of the signal strength in dBm."""


class WifiRouters:
    """The access points of one store and day."""

    def __init__(self, day: StoreDay) -> None:
        """Place the access points."""
        self._day, self._wire, self._hashing = day, RecordFactory(day, "wifi_sightings"), DeviceHasher(day)
        self._rng = day.rng("radio")
        routers = [sensor.id for sensor in simulated(day.store, "wifi_sightings")]
        self._router = {"inside": routers[0], "outside": routers[-1]}

    def hear(self, people: Sequence[Visitor], shifts: Sequence[Shift]) -> Records:
        """Generate every sighting of the day."""
        rng = self._rng
        for each in people:
            if rng.random() < CARRIES:
                yield from self._visit(each, random_device(rng))
        came = Counter(window_start(each.came_ms) for each in people)
        for start in self._day.quarters():
            for _ in range(poisson(rng, QUIET + PASSERS * came[start])):
                at = start + rng.randrange(MINUTE_MS * 13)
                passers_by = _times(rng, at, at + rng.randrange(90 * SECOND_MS))
                yield from self._heard(random_device(rng), "outside", passers_by)
        for shift in shifts:
            yield from self._heard(random_device(rng), "inside", range(shift.came_ms, shift.left_ms, ALWAYS_ON_MS))
        for _ in range(PRINTERS):
            first = self._day.begins + rng.randrange(ALWAYS_ON_MS)
            always = range(first, self._day.ends, ALWAYS_ON_MS)
            yield from self._heard(random_device(rng, randomized=False), "inside", always)

    def _visit(self, visitor: Visitor, carried: Device) -> Iterator[SensorRecord]:
        rng = self._rng
        approaching = max(visitor.came_ms - rng.randint(20, 150) * SECOND_MS, self._day.begins)
        yield from self._heard(carried, "outside", _times(rng, approaching, visitor.came_ms - SECOND_MS))
        yield from self._heard(carried, "inside", _times(rng, visitor.came_ms + 3 * SECOND_MS, visitor.left_ms))

    def _heard(self, heard: Device, zone: str, moments: Sequence[int] | Iterator[int]) -> Iterator[SensorRecord]:
        mean, deviation = INSIDE if zone == "inside" else OUTSIDE
        for at in moments:
            name, salt_id = self._hashing.named(heard, at)
            signal = min(max(round(self._rng.gauss(mean, deviation)), -95), -30)
            said = {"device": name, "salt_id": salt_id, "zone": zone, "signal_dbm": signal}
            yield self._wire.record(at, self._router[zone], {**said, "randomized": heard.randomized})


def _times(rng: Random, first: int, last: int) -> Iterator[int]:
    """Yield the times at which a device is seen between two instants: one every 30 to 60 seconds."""
    while first <= last:
        yield first
        first += rng.randint(30 * SECOND_MS, 60 * SECOND_MS)
