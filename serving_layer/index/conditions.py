"""Under which conditions a point came about: the hour of the week, the weather, a public holiday."""

from bisect import bisect_right
from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

from serving_layer.index.question import IndexGrain
from serving_layer.responses.index import IndexConditions
from serving_layer.responses.metrics import WeatherRow

EDGES = (0, 10, 20, 30)
BANDS = ("below 0", "0 to 10", "10 to 20", "20 to 30", "30 and above")
"""Of the average temperature of a point, in C; each begins at its lower edge."""
RAINS_FROM: Mapping[IndexGrain, float] = {"hour": 0.1, "day": 1.0}
"""From how many mm on it rained. 1 mm is the wet day of climatology."""

Cell = tuple[int, int | None]
"""ISO weekday of the business day, and hour of the clock; None at the grain day."""
Levels = tuple[Cell, str | None, bool | None]
"""Hour of the week, band of temperature, rain; None where there is no factor."""


class Conditions(NamedTuple):
    """`temperature`, `rain`: None if nothing was observed. `holidays`: their names, none on other days."""

    day: date
    cell: Cell
    temperature: str | None = None
    rain: bool | None = None
    holidays: tuple[str, ...] = ()

    @property
    def levels(self) -> Levels:
        """What a factor may belong to, in the order of `Factors`."""
        return self.cell, self.temperature, self.rain

    def response(self) -> IndexConditions:
        """As the answer shows them."""
        return IndexConditions(self.temperature, self.rain, self.holidays)


def weather(row: WeatherRow | None, grain: IndexGrain) -> tuple[str | None, bool | None]:
    """The band and whether it rained, of a row of `context=weather`; of none nothing is known."""
    if row is None:
        return None, None
    band = None if row.temperature_avg is None else BANDS[bisect_right(EDGES, row.temperature_avg)]
    return band, row.precipitation >= RAINS_FROM[grain]
