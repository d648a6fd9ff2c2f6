"""People who cross a door line, counted over short intervals. Zeros are sent too: silence is not zero."""

import msgspec

from master_dataset.fields import Id, Instant, Label, Whole
from master_dataset.fields.times import INTERVAL, flags, refuse_crossing
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

MOST_PEOPLE = 100_000
MOST_PER_SECOND = 4
"""So many people cannot pass one line."""


class Count(msgspec.Struct, frozen=True, gc=False):
    """What one line counted. None: the sensor does not tell groups, or staff, apart."""

    sensor_id: str
    line: str
    interval_ms: int
    people_in: int
    people_out: int
    group_in: int | None
    group_out: int | None
    staff_in: int | None
    staff_out: int | None
    flags: list[str]


def count(record: Record, terms: Terms) -> Count:
    """Return the count. InvalidRecordError if the interval crosses a window."""
    interval = record["interval_ms"]
    refuse_crossing(record["happened_at"], interval)
    people = record["people_in"], record["people_out"]
    groups, staff = ((record[f"{of}_in"], record[f"{of}_out"]) for of in ("group", "staff"))
    odd = flags(
        (
            "groups_above_people",
            any(some is not None and some > all_ for some, all_ in zip(groups, people, strict=True)),
        ),
        ("no_staff_split", staff == (None, None)),
        ("implausible_rate", sum(people) * 1000 > MOST_PER_SECOND * interval),
        ("unregistered_sensor", not terms.knows_sensor(record["sensor_id"], "people_counts")),
    )
    return Count(record["sensor_id"], record["line"], interval, *people, *groups, *staff, odd)


PEOPLE_COUNTS = Source(
    topic="people_counts",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "sensor_id", "line", "happened_at"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "sensor_id": Label(about="The sensor, as registered."),
        "line": Label(about="The door line that was crossed."),
        "happened_at": Instant(about="Start of the counting interval."),
        "interval_ms": INTERVAL,
        "people_in": Whole(0, MOST_PEOPLE, about="Who came in; staff left out where the sensor knows them."),
        "people_out": Whole(0, MOST_PEOPLE, about="Who went out in the interval."),
        "group_in": Whole(
            0, MOST_PEOPLE, optional=True, about="Groups that came in; absent if the sensor does not tell them."
        ),
        "group_out": Whole(0, MOST_PEOPLE, optional=True, about="Groups that went out in the interval."),
        "staff_in": Whole(
            0, MOST_PEOPLE, optional=True, about="Staff who came in; absent if the sensor does not tell them."
        ),
        "staff_out": Whole(0, MOST_PEOPLE, optional=True, about="Staff who went out in the interval."),
    },
    payload=Count,
    derive=count,
    content=("interval_ms", "people_in", "people_out", "group_in", "group_out", "staff_in", "staff_out"),
    example={
        "happened_at": "2026-03-07T10:00:00+01:00",
        "operation_id": 1,
        "sensor_id": "cam-1",
        "line": "door-A",
        "interval_ms": 900_000,
        "people_in": 6,
        "people_out": 2,
        "group_in": 4,
    },
    flags={
        "groups_above_people": "More groups than people passed.",
        "implausible_rate": "More than four people a second passed.",
        "no_staff_split": "The sensor does not tell staff apart.",
        "unregistered_sensor": "The store has registered sensors, but not this one.",
    },
)
