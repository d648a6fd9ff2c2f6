"""A router heard a device. The device is a keyed hash made at the edge; its hardware address never gets here.

The key of the hash (the salt) is random for each store, changes when its business day begins, and is destroyed.
"""

import re

import msgspec

from master_dataset.fields import Choice, Flag, Id, Instant, Label, Whole
from master_dataset.intervals import flags
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.source import Record, Source
from master_dataset.terms import Terms

WEAK_DBM = -90
DEVICE = re.compile(r"[0-9a-f]{32}", re.ASCII).fullmatch
HARDWARE_ADDRESS = re.compile(
    r"(?<![0-9A-Fa-f])"
    r"(?:[0-9A-Fa-f]{2}(?:[:\-. ]?[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}(?:[.\-: ][0-9A-Fa-f]{4}){2})"
    r"(?![0-9A-Fa-f])"
)
"""12 hex digits, with or without separators, and not part of a longer hash."""


class Sighting(msgspec.Struct, frozen=True, gc=False):
    """`business_day`: the store's local date of the event, as days since 1970; the salt changes when it begins."""

    sensor_id: str
    device: str
    salt_id: str
    is_inside: bool
    signal_dbm: int
    is_randomized: bool
    business_day: int
    flags: list[str]


def sighting(record: Record, terms: Terms) -> Sighting:
    """Give the sighting. Raises Refused `raw_mac_address` for what looks like one, `out_of_range` for no hash."""
    device = record["device"]
    if HARDWARE_ADDRESS.fullmatch(device):
        raise Refused(Reason.RAW_MAC_ADDRESS, "is a hardware address; hash it at the edge", "/device")
    if not DEVICE(device):
        raise Refused(Reason.OUT_OF_RANGE, "must be 32 lower-case hex digits", "/device")
    odd = flags(
        ("weak_signal", record["signal_dbm"] < WEAK_DBM),
        ("unregistered_sensor", not terms.knows_sensor(record["sensor_id"], "wifi_sightings")),
    )
    return Sighting(
        record["sensor_id"], device, record["salt_id"], record["zone"] == "inside", record["signal_dbm"],
        record["randomized"], terms.business_day(record["happened_at"]), odd,
    )  # fmt: skip


WIFI_SIGHTINGS = Source(
    topic="wifi_sightings",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "sensor_id", "salt_id", "device", "zone", "happened_at"),
    fields={
        "operation_id": Id(),
        "sensor_id": Label(),
        "device": Label(),
        "salt_id": Label(),
        "zone": Choice(("outside", "inside")),
        "happened_at": Instant(),
        "signal_dbm": Whole(-127, 0),
        "randomized": Flag(),
    },
    payload=Sighting,
    derive=sighting,
    content=("signal_dbm", "is_randomized"),
    masked=HARDWARE_ADDRESS,
)
