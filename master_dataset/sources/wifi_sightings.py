"""A router heard a device. The device is a keyed hash made at the edge; its hardware address never gets here.

The key of the hash (the salt) is random for each store, changes when its business day begins, and is destroyed.
"""

import msgspec

from master_dataset.fields import HARDWARE_ADDRESS, Choice, Device, Flag, Id, Instant, Label, Whole
from master_dataset.fields.times import flags
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

WEAK_DBM = -90


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
    """Return the sighting."""
    odd = flags(
        ("weak_signal", record["signal_dbm"] < WEAK_DBM),
        ("unregistered_sensor", not terms.knows_sensor(record["sensor_id"], "wifi_sightings")),
    )
    return Sighting(
        record["sensor_id"],
        record["device"],
        record["salt_id"],
        record["zone"] == "inside",
        record["signal_dbm"],
        record["randomized"],
        terms.business_day(record["happened_at"]),
        odd,
    )


WIFI_SIGHTINGS = Source(
    topic="wifi_sightings",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "sensor_id", "salt_id", "device", "zone", "happened_at"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "sensor_id": Label(about="The router, as registered."),
        "device": Device(about="The first 16 bytes of HMAC-SHA-256(salt, hardware address), made at the edge."),
        "salt_id": Label(about="Names the salt; says nothing of it."),
        "zone": Choice(("outside", "inside"), about="Where the device was, as the edge decides."),
        "happened_at": Instant(about="Time of the frame."),
        "signal_dbm": Whole(-127, 0, about="Strength of the signal."),
        "randomized": Flag(about="Whether the hardware address was a random one."),
    },
    payload=Sighting,
    derive=sighting,
    content=("signal_dbm", "is_randomized"),
    example={
        "happened_at": "2026-03-07T09:02:00Z",
        "operation_id": 1,
        "sensor_id": "ap-2",
        "device": "9f86d081884c7d659a2feaa0c55ad015",
        "salt_id": "2026-03-07",
        "zone": "inside",
        "signal_dbm": -61,
    },
    masked=HARDWARE_ADDRESS,
    flags={
        "weak_signal": "Below -90 dBm.",
        "unregistered_sensor": "The store has registered sensors, but not this one.",
    },
)
