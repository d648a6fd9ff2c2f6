"""Somebody joins a checkout queue, is served, leaves served, or gives up. The track dies with the visit."""

import msgspec

from master_dataset.fields import Choice, Id, Instant, Label, Whole
from master_dataset.fields.times import HOUR_MS, flags, lasted, required
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

LONGEST_MS = 4 * HOUR_MS
MOST_WAITING = 1000
KINDS = ("join", "service_start", "leave", "abandon")


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """`change`: the kind. `joined_us`: microseconds since 1970.

    `wait_ms`: of service_start and abandon. `service_ms`: of leave.
    """

    sensor_id: str
    queue: str
    track: str
    change: str
    joined_us: int
    wait_ms: int | None
    service_ms: int | None
    length_after: int | None
    flags: list[str]


def waiting(record: Record, terms: Terms) -> Waiting:
    """Return the change. InvalidRecordError if something ends before it began, or lasts over 4 hours."""
    kind, at = record["kind"], record["happened_at"]
    joined = at if kind == "join" else required(record["joined_at"], "joined_at")
    wait = service = None
    if kind == "leave":
        started = required(record["service_started_at"], "service_started_at")
        lasted(joined, started, LONGEST_MS, "joined_at")
        service = lasted(started, at, LONGEST_MS, "service_started_at")
    elif kind != "join":
        wait = lasted(joined, at, LONGEST_MS, "joined_at")
    odd = flags(
        ("instant_wait", wait == 0),
        ("unregistered_sensor", not terms.knows_sensor(record["sensor_id"], "queue_events")),
    )
    who = record["sensor_id"], record["queue"], record["track"], record["kind"]
    return Waiting(*who, joined * 1000, wait, service, record["length_after"], odd)


QUEUE_EVENTS = Source(
    topic="queue_events",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "sensor_id", "queue", "track", "kind", "happened_at"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "sensor_id": Label(about="The sensor, as registered."),
        "queue": Label(about="The queue."),
        "track": Label(about="Who is seen; random, and dies with the visit."),
        "kind": Choice(KINDS, about="`leave`: served, `abandon`: not."),
        "happened_at": Instant(about="Moment of the change."),
        "joined_at": Instant(optional=True, about="When the queue was joined; needed by all but `join`."),
        "service_started_at": Instant(optional=True, about="When service began; needed by `leave`."),
        "length_after": Whole(0, MOST_WAITING, optional=True, about="People who wait after the change."),
    },
    payload=Waiting,
    derive=waiting,
    content=("joined_us", "service_ms", "length_after"),
    example={
        "happened_at": "2026-03-07T10:14:00+01:00",
        "operation_id": 1,
        "sensor_id": "q-1",
        "queue": "Q1",
        "track": "p1",
        "kind": "service_start",
        "joined_at": "2026-03-07T10:10:00+01:00",
    },
    flags={
        "instant_wait": "Somebody waited for no time at all.",
        "unregistered_sensor": "The store has registered sensors, but not this one.",
    },
)
