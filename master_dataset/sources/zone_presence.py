"""Somebody enters or leaves a zone of the sales floor: browsing. The track is random and dies with the visit."""

import msgspec

from master_dataset.fields import Choice, Id, Instant, Label
from master_dataset.fields.times import HOUR_MS, flags, lasted, required
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

LONGEST_MS = 12 * HOUR_MS


class Presence(msgspec.Struct, frozen=True, gc=False):
    """`crossing`: the kind. `entered_us`: microseconds since 1970, `dwell_ms`; both None for an enter."""

    sensor_id: str
    zone: str
    track: str
    crossing: str
    entered_us: int | None
    dwell_ms: int | None
    flags: list[str]


def presence(record: Record, terms: Terms) -> Presence:
    """Return the crossing. InvalidRecordError for an exit before its entry, or more than 12 hours after it."""
    entered = dwell = None
    if record["kind"] == "exit":
        entered = required(record["entered_at"], "entered_at")
        dwell = lasted(entered, record["happened_at"], LONGEST_MS, "entered_at")
    odd = flags(
        ("unknown_zone", bool(terms.zones) and record["zone"] not in terms.zones),
        ("unregistered_sensor", not terms.knows_sensor(record["sensor_id"], "zone_presence")),
    )
    return Presence(
        record["sensor_id"],
        record["zone"],
        record["track"],
        record["kind"],
        None if entered is None else entered * 1000,
        dwell,
        odd,
    )


ZONE_PRESENCE = Source(
    topic="zone_presence",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "sensor_id", "zone", "track", "kind", "happened_at"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "sensor_id": Label(about="The sensor, as registered."),
        "zone": Label(about="The zone."),
        "track": Label(about="Who is seen; random, and dies with the visit."),
        "kind": Choice(("enter", "exit"), about="Which way."),
        "happened_at": Instant(about="Moment of the crossing."),
        "entered_at": Instant(optional=True, about="When the zone was entered; needed by `exit`."),
    },
    payload=Presence,
    derive=presence,
    content=("entered_us",),
    example={
        "happened_at": "2026-03-07T10:07:30+01:00",
        "operation_id": 1,
        "sensor_id": "st-4",
        "zone": "shoes",
        "track": "t81",
        "kind": "exit",
        "entered_at": "2026-03-07T10:06:00+01:00",
    },
    flags={
        "unknown_zone": "The store has registered zones, but not this one.",
        "unregistered_sensor": "The store has registered sensors, but not this one.",
    },
)
