"""Weather beside the points: what was observed at each store while each point lasted."""

import asyncio
from collections.abc import Iterator, Sequence
from fractions import Fraction

from serving_layer.context.kind import Row
from serving_layer.context.reading import Reading
from serving_layer.query.resolved_query import Asked, StoreTime
from serving_layer.query.timeline import Timeline, timeline
from views.core.merge import Cell
from views.weather import WEATHER

UNITS = {"temperature": "C", "precipitation": "mm", "wind": "m/s", "cloud": "percent"}
PRECIPITATION = list(WEATHER.columns).index("precipitation_um")
THOUSAND, TEN = 1000, 10


class Weather:
    """A row per store and point in which anything was observed; at `15m` a row per hour."""

    name = "weather"
    views: Sequence[str] = (WEATHER.name,)

    async def told(self, asked: Asked, reading: Reading) -> Row:
        """`providers`: who observed. Means are over their observations; `observations` says how many."""
        grain = "hour" if asked.grain == "15m" else asked.grain
        stores = await asyncio.gather(*(_rows(of, _line(asked, of), reading) for of in asked.stores))
        return {"grain": grain, "units": UNITS, "rows": [row for rows in stores for row in rows]}


def _line(asked: Asked, of: StoreTime) -> Timeline:
    """The points themselves, or the hours that quarter hours lie in."""
    line = of.timeline
    return timeline("hour", of.at.days, line.start, line.end) if asked.grain == "15m" else line


async def _rows(of: StoreTime, line: Timeline, reading: Reading) -> list[Row]:
    found: dict[int, list[Cell]] = {}
    for cell in await reading.read(WEATHER, of.store.id, line.start, line.end):
        found.setdefault(line.point_of(cell.key.window), []).append(cell)
    rows: list[Row] = []
    for point, cells in sorted(found.items()):
        labels = line.labels[point] if line.labels else {}
        is_final = reading.is_final(WEATHER, line.bounds[point].end, cells)
        row: Row = {"store": of.store.id, "start": line.starts[point], **labels, **dict(_observed(cells))}
        rows.append(row | {"final": is_final})
    return rows


def _observed(cells: Sequence[Cell]) -> Iterator[tuple[str, object]]:
    states = WEATHER.by_metric(WEATHER.merge_all(cell.merged for cell in cells) or ())

    def shown(name: str, unit: int) -> float | None:
        exact = WEATHER.metrics[name].present(states[name])
        return None if exact is None else float(Fraction(exact) / unit)

    yield "temperature_avg", shown("temperature_mc", THOUSAND)
    yield "temperature_min", shown("coldest_mc", THOUSAND)
    yield "temperature_max", shown("warmest_mc", THOUSAND)
    yield "precipitation", float(_precipitation(cells) / THOUSAND)
    yield "wind_avg", shown("wind_mm_s", THOUSAND)
    yield "cloud_avg", shown("cloud_permille", TEN)
    yield "providers", sorted({provider for cell in cells if (provider := cell.key.dimensions[0])})
    yield "observations", states["temperature_mc"][1]


def _precipitation(cells: Sequence[Cell]) -> Fraction:
    """Of each window the mean of its providers, added: the same rain is not counted once for each of them."""
    windows: dict[int, list[int]] = {}
    for cell in cells:
        windows.setdefault(cell.key.window, []).append(int(cell.merged[PRECIPITATION] or 0))
    return sum((Fraction(sum(said), len(said)) for said in windows.values()), Fraction(0))
