"""Weather beside the points: what was observed at each store while each point lasted."""

import asyncio
from collections.abc import Sequence
from fractions import Fraction

from serving_layer.context.reading import Reading
from serving_layer.query.resolved_query import Asked, StoreTime
from serving_layer.query.timeline import Timeline, timeline
from serving_layer.responses.metrics import Weather as WeatherContext
from serving_layer.responses.metrics import WeatherRow, WeatherUnits
from views.core.merge import Cell
from views.weather import WEATHER

UNITS = WeatherUnits(temperature="C", precipitation="mm", wind="m/s", cloud="percent")
PRECIPITATION = list(WEATHER.columns).index("precipitation_um")
THOUSAND, TEN = 1000, 10


class Weather:
    """A row per store and point in which anything was observed; at `15m` a row per hour."""

    name = "weather"
    views: Sequence[str] = (WEATHER.name,)

    async def told(self, asked: Asked, reading: Reading) -> WeatherContext:
        """`providers`: who observed. Means are over their observations; `observations` says how many."""
        grain = "hour" if asked.grain == "15m" else asked.grain
        stores = await asyncio.gather(*(_rows(of, _line(asked, of), reading) for of in asked.stores))
        return WeatherContext(grain, UNITS, [row for rows in stores for row in rows])


def _line(asked: Asked, of: StoreTime) -> Timeline:
    """The points themselves, or the hours that quarter hours lie in."""
    line = of.timeline
    return timeline("hour", of.at.days, line.start, line.end) if asked.grain == "15m" else line


async def _rows(of: StoreTime, line: Timeline, reading: Reading) -> list[WeatherRow]:
    found: dict[int, list[Cell]] = {}
    for cell in await reading.read(WEATHER, of.store.id, line.start, line.end):
        found.setdefault(line.point_of(cell.key.window), []).append(cell)
    rows: list[WeatherRow] = []
    for point, cells in sorted(found.items()):
        is_final = reading.is_final(WEATHER, line.bounds[point].end, cells)
        row = _observed(of.store.id, line.starts[point], cells, is_final=is_final)
        if line.labels:
            row.weekday, row.hour, row.hours_present = line.labels[point]
        rows.append(row)
    return rows


def _observed(store: str, start: str, cells: Sequence[Cell], *, is_final: bool) -> WeatherRow:
    states = WEATHER.by_metric(WEATHER.merge_all(cell.merged for cell in cells) or ())

    def shown(name: str, unit: int) -> float | None:
        exact = WEATHER.metrics[name].present(states[name])
        return None if exact is None else float(Fraction(exact) / unit)

    return WeatherRow(
        store=store,
        start=start,
        temperature_avg=shown("temperature_mc", THOUSAND),
        temperature_min=shown("coldest_mc", THOUSAND),
        temperature_max=shown("warmest_mc", THOUSAND),
        precipitation=float(_precipitation(cells) / THOUSAND),
        wind_avg=shown("wind_mm_s", THOUSAND),
        cloud_avg=shown("cloud_permille", TEN),
        providers=sorted({provider for cell in cells if (provider := cell.key.dimensions[0])}),
        observations=int(states["temperature_mc"][1] or 0),
        final=is_final,
    )


def _precipitation(cells: Sequence[Cell]) -> Fraction:
    """Of each window the mean of its providers, added: the same rain is not counted once for each of them."""
    windows: dict[int, list[int]] = {}
    for cell in cells:
        windows.setdefault(cell.key.window, []).append(int(cell.merged[PRECIPITATION] or 0))
    return sum((Fraction(sum(said), len(said)) for said in windows.values()), Fraction(0))
