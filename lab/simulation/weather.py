"""`weather_observations`: the weather at a store by window, with seasons, a daily curve, and rain."""

from math import cos, tau
from typing import NamedTuple

from lab.simulation.records import RecordFactory, Records
from lab.simulation.store_day import HOUR_MS, QUARTER_MS, StoreDay

PROVIDER = "simulated"
RAINY_DAYS = 0.35
SOUTHERN = ("Australia/", "America/Sao_Paulo", "America/Argentina/", "Pacific/Auckland", "Africa/Johannesburg")


class Weather(NamedTuple):
    """The fields of a record of `weather_observations`."""

    temperature_mc: int
    precipitation_um: int
    wind_mm_s: int
    cloud_permille: int

    @property
    def appeal(self) -> float:
        """Share of the visitors of a fine day who come: rain, frost and heat keep some at home."""
        degrees = self.temperature_mc / 1000
        rain = min(self.precipitation_um / 1000, 1.0)
        return (1 - 0.4 * rain) * (0.8 if degrees < -5 or degrees > 33 else 1.0)  # noqa: PLR2004 - frost and heat


def _shower(day: StoreDay) -> tuple[int, int, int]:
    """Start and end of the rain, and how much falls in a quarter of an hour."""
    rng = day.rng("rain")
    if rng.random() >= RAINY_DAYS:
        return day.begins, day.begins, 0
    starts = rng.randrange(day.begins, day.ends, QUARTER_MS)
    return starts, starts + rng.randint(2, 6) * HOUR_MS, rng.randint(150, 900)


def weather(day: StoreDay, quarter_ms: int) -> Weather:
    """Return the weather of one window. It does not depend on the order of calls."""
    starts, ends, heavy = _shower(day)
    rains = starts <= quarter_ms < ends
    today, now = day.rng("season"), day.rng(f"weather {quarter_ms}")
    there = day.local(quarter_ms)
    season = -cos(tau * (there.timetuple().tm_yday - 20) / 365.25)
    if day.store.timezone.startswith(SOUTHERN):
        season = -season
    curve = cos(tau * (there.hour + there.minute / 60 - 15) / 24)
    degrees = 10.5 + 10 * season + 4 * curve + today.gauss(0, 3) - 3 * rains + now.gauss(0, 0.2)
    clouds = now.randint(850, 1000) if rains else min(1000, today.randint(0, 800) + now.randint(0, 150))
    wet = heavy + now.randint(-100, 100) if rains else 0
    return Weather(round(degrees * 1000), wet, round(today.uniform(1000, 7000) * now.uniform(0.7, 1.3)), clouds)


def weather_observations(day: StoreDay) -> Records:
    """Generate an observation for every window of the day."""
    wire = RecordFactory(day, "weather_observations")
    for start in day.quarters():
        seen = weather(day, start)._asdict()
        yield wire.record(start, "", {"provider": PROVIDER, "interval_ms": QUARTER_MS, **seen}, start + QUARTER_MS)
