"""A WiFi device, and the only name under which it leaves the edge: a keyed hash that is another one on the next day."""

from dataclasses import dataclass
from functools import lru_cache
from hmac import digest
from random import Random

from lab.simulation.shop_day import ShopDay
from master_dataset.registry.terms import business_date

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
