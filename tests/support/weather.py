"""Observations of the weather as a provider would send them."""

import json


def observation(  # noqa: PLR0913 - the fields of an observation
    happened_at: str,
    celsius: float,
    *,
    rain_mm: float = 0,
    wind_m_s: float = 0,
    cloud_percent: float | None = None,
    provider: str = "s1",
    store: str = "1",
) -> bytes:
    """One of a quarter hour."""
    clouds = {} if cloud_percent is None else {"cloud_permille": round(cloud_percent * 10)}
    told = {
        "temperature_mc": round(celsius * 1000),
        "precipitation_um": round(rain_mm * 1000),
        "wind_mm_s": round(wind_m_s * 1000),
    }
    identity = {"operation_id": store, "happened_at": happened_at, "provider": provider, "interval_ms": 900_000}
    return json.dumps(identity | told | clouds).encode()
