"""A sensor reports that it was working during a short interval. One that knows it is blind sends nothing."""

import msgspec

from master_dataset.fields import Choice, Id, Instant, Label
from master_dataset.fields.times import INTERVAL, flags, refuse_crossing
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

WATCHED = ("wifi_sightings", "queue_events", "demographics", "zone_presence")
"""Sources whose sensors may have nothing to report.

`people_counts` needs none: each interval shows that its sensor works.
"""


class Beat(msgspec.Struct, frozen=True, gc=False):
    """The source that the sensor feeds, and for how long it was working."""

    sensor_id: str
    source: str
    interval_ms: int
    flags: list[str]


def beat(record: Record, terms: Terms) -> Beat:
    """Return the heartbeat. InvalidRecordError if the interval crosses a window boundary."""
    refuse_crossing(record["happened_at"], record["interval_ms"])
    odd = flags(("unregistered_sensor", not terms.knows_sensor(record["sensor_id"], record["source"])))
    return Beat(record["sensor_id"], record["source"], record["interval_ms"], odd)


SENSOR_HEARTBEATS = Source(
    topic="sensor_heartbeats",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "sensor_id", "happened_at"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "sensor_id": Label(about="The sensor, as registered."),
        "source": Choice(WATCHED, about="What the sensor feeds."),
        "happened_at": Instant(about="From when on it was alive."),
        "interval_ms": INTERVAL,
    },
    payload=Beat,
    derive=beat,
    content=("source", "interval_ms"),
    example={
        "happened_at": "2026-03-07T09:00:00Z",
        "operation_id": 1,
        "sensor_id": "ap-2",
        "source": "wifi_sightings",
        "interval_ms": 60_000,
    },
    flags={
        "unregistered_sensor": "The store has registered sensors, but not this one.",
    },
)
