"""What the weather was at a store over a short interval, in whole thousandths of its units."""

import msgspec

from master_dataset.fields import Id, Instant, Label, Whole
from master_dataset.intervals import INTERVAL, refuse_crossing
from master_dataset.source import Record, Source
from master_dataset.terms import Terms

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
    """Give the observation. Raises Refused if the interval crosses a window."""
    refuse_crossing(record["happened_at"], record["interval_ms"])
    return Observation(*(record[name] for name in Observation.__struct_fields__))


WEATHER_OBSERVATIONS = Source(
    topic="weather_observations",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "provider", "happened_at"),
    fields={
        "operation_id": Id(),
        "provider": Label(),
        "happened_at": Instant(),
        "interval_ms": INTERVAL,
        "temperature_mc": Whole(-90_000, 65_000),
        "precipitation_um": Whole(0, MOST),
        "wind_mm_s": Whole(0, MOST),
        "cloud_permille": Whole(0, 1000, optional=True),
    },
    payload=Observation,
    derive=observation,
    content=("interval_ms", "temperature_mc", "precipitation_um", "wind_mm_s", "cloud_permille"),
)
