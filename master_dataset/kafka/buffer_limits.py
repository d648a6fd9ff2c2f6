"""How much a courier has under way at once."""

from typing import NamedTuple


class CourierRoom(NamedTuple):
    """Of what was taken, and is neither acknowledged nor given up."""

    records: int = 10_000
    size: int = 32_000_000
    """Bytes of keys and values."""
