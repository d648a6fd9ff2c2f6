"""What multiplies to an expected value: a base per hour of the week, a factor per band of temperature and for rain."""

from collections.abc import Mapping
from dataclasses import dataclass

from serving_layer.index.conditions import Cell, Conditions
from serving_layer.responses.index import IndexFactors


@dataclass(frozen=True)
class Factors:
    """A kind of weather that the history hardly knows has no factor. Those there are, are 1 on average."""

    base: Mapping[Cell, float]
    temperature: Mapping[str, float]
    rain: Mapping[bool, float]

    def expected(self, of: Conditions) -> float:
        """Of a day that is no holiday, or as if it were none. 0 for an hour of the week that the history lacks."""
        cell, temperature, rain = of.levels
        weather = self.temperature.get(temperature or "", 1.0) * (1.0 if rain is None else self.rain.get(rain, 1.0))
        return self.base.get(cell, 0.0) * weather

    def know_weather(self, of: Conditions) -> bool:
        """Whether there is a factor for all of its weather."""
        return of.temperature in self.temperature and of.rain in self.rain

    def response(self) -> IndexFactors:
        """As the answer shows them; the bases are in what it expects."""
        return IndexFactors(
            temperature={band: round(factor, 4) for band, factor in sorted(self.temperature.items())},
            rain={"wet" if is_wet else "dry": round(factor, 4) for is_wet, factor in sorted(self.rain.items())},
        )
