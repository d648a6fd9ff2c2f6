"""Devices, as routers hear them."""

import re
from dataclasses import dataclass

from master_dataset.fields.field import Schema
from master_dataset.fields.names import Label
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.registry.currency import Currency

HARDWARE_ADDRESS = re.compile(
    r"(?<![H])(?:[H]{6}[:\-. ]?[H]{6}"
    r"|[H]{2}([. ])[H]{2}(?:\1[H]{2}){4}"
    r"|[H]{4}([:\-. ])[H]{4}\2[H]{4}"
    r"|[H]{1,2}([:\-])[H]{1,2}(?:\3[H]{1,2}){4})"  # some leave out leading zeros
    r"(?![H])(?<![H]{8}-[H]{4}-[H]{4}-[H]{4})(?<![H]{4}-[H]{4}-[H]{4}-[H]{12})".replace("H", "0-9A-Fa-f")
)
"""12 hex digits, with or without separators, and not part of a longer hash or of a UUID."""
HASH = re.compile(r"[0-9a-f]{32}", re.ASCII)
is_hash = HASH.fullmatch


@dataclass(frozen=True)
class Device(Label):
    """A keyed hash of a hardware address, made at the edge. The address itself is refused."""

    @property
    def schema(self) -> Schema:
        """A string of hex digits."""
        example = {"examples": ["9f86d081884c7d659a2feaa0c55ad015"]}
        return {"type": "string", "pattern": f"^{HASH.pattern}$", "description": "32 lower-case hex digits.", **example}

    def read(self, value: object, currency: Currency) -> str:
        """Give the hash. What looks like an address is `raw_mac_address`, anything else `out_of_range`."""
        device = super().read(value, currency)
        if is_hash(device):
            return device
        if HARDWARE_ADDRESS.fullmatch(device):
            raise Refused(Reason.RAW_MAC_ADDRESS, "is a hardware address; hash it at the edge")
        raise Refused(Reason.OUT_OF_RANGE, "must be 32 lower-case hex digits")
