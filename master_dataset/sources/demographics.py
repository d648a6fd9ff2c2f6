"""How many people of an age band and gender a camera saw over a short interval: counts only, no picture, no person."""

import msgspec

from master_dataset.fields import Choice, Id, Instant, Label, Whole
from master_dataset.fields.times import INTERVAL, flags, refuse_crossing
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

AGE_BANDS = ("0-14", "15-24", "25-34", "35-44", "45-54", "55-64", "65+", "unknown")
GENDERS = ("female", "male", "unknown")


class DemographicCount(msgspec.Struct, frozen=True, gc=False):
    """People of one band and gender."""

    sensor_id: str
    interval_ms: int
    age_band: str
    gender: str
    people: int
    flags: list[str]


def count(record: Record, terms: Terms) -> DemographicCount:
    """Return the count. InvalidRecordError if the interval crosses a window."""
    refuse_crossing(record["happened_at"], record["interval_ms"])
    odd = flags(("unregistered_sensor", not terms.knows_sensor(record["sensor_id"], "demographics")))
    who = record["sensor_id"], record["interval_ms"], record["age_band"], record["gender"]
    return DemographicCount(*who, record["people"], odd)


DEMOGRAPHICS = Source(
    topic="demographics",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "sensor_id", "happened_at", "age_band", "gender"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "sensor_id": Label(about="The sensor, as registered."),
        "happened_at": Instant(about="Start of the counting interval."),
        "interval_ms": INTERVAL,
        "age_band": Choice(AGE_BANDS, about="Years, as estimated."),
        "gender": Choice(GENDERS, about="As estimated."),
        "people": Whole(1, 10_000, about="People of this band and gender who were seen."),
    },
    payload=DemographicCount,
    derive=count,
    content=("interval_ms", "people"),
    example={
        "happened_at": "2026-03-07T10:00:00+01:00",
        "operation_id": 1,
        "sensor_id": "cam-1",
        "interval_ms": 900_000,
        "age_band": "25-34",
        "gender": "female",
        "people": 3,
    },
    flags={
        "unregistered_sensor": "The store has registered sensors, but not this one.",
    },
)
