"""What the weather was at a store over a short interval, in whole thousandths of its units."""

import msgspec

from master_dataset.fields import Id, Instant, Label, Whole
from master_dataset.fields.times import INTERVAL, refuse_crossing
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

MOST = 10**9


class Observation(msgspec.Struct, frozen=True, gc=False):
    """Temperature in 1/1000 C, precipitation in 1/1000 mm, wind in mm/s, cloud cover in 1/1000."""

    provider: str
    interval_ms: int
    temperature_mc: int
    precipitation_um: int
    wind_mm_s: int
    cloud_permille: int | None


def observation(record: Record, _: Terms) -> Observation:
    """Return the observation. InvalidRecordError if the interval crosses a window."""
    refuse_crossing(record["happened_at"], record["interval_ms"])
    return Observation(*(record[name] for name in Observation.__struct_fields__))


WEATHER_OBSERVATIONS = Source(
    topic="weather_observations",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "provider", "happened_at"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "provider": Label(about="Who observed."),
        "happened_at": Instant(about="Start of the interval."),
        "interval_ms": INTERVAL,
        "temperature_mc": Whole(-90_000, 65_000, about="Temperature in 1/1000 of a degree Celsius."),
        "precipitation_um": Whole(0, MOST, about="Precipitation in 1/1000 mm."),
        "wind_mm_s": Whole(0, MOST, about="Wind in mm/s."),
        "cloud_permille": Whole(0, 1000, optional=True, about="Cloud cover in 1/1000."),
    },
    payload=Observation,
    derive=observation,
    content=("interval_ms", "temperature_mc", "precipitation_um", "wind_mm_s", "cloud_permille"),
    example={
        "happened_at": "2026-03-07T09:00:00Z",
        "operation_id": 1,
        "provider": "s1",
        "interval_ms": 900_000,
        "temperature_mc": 7400,
        "precipitation_um": 200,
        "wind_mm_s": 3100,
    },
)
