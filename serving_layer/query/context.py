"""Context of an answer: public holidays and weather of each store, which `context=` asks for."""

import asyncio
from collections.abc import Container, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from master_dataset.errors import UnknownNameError
from serving_layer.compare.public_holidays import VERSION, names_of
from serving_layer.errors import CountryUnknownError, NotAvailableError
from serving_layer.off_loop import CELLS_PER_POINT, off_loop
from serving_layer.responses.metrics import (
    Context,
    Holiday,
    Holidays,
    HolidaysUnknown,
    Weather,
    WeatherRow,
    WeatherUnits,
)
from serving_layer.store.cells import MergedCells
from serving_layer.store.snapshot import ReadSnapshot
from serving_layer.timeline import Timeline, place_in_week, timeline
from views.core.cut import seconds
from views.core.local_time import Span, round_up
from views.core.merge import Cell
from views.weather import WEATHER

if TYPE_CHECKING:
    from serving_layer.query.resolve import ResolvedQuery, StoreQuery

UNITS = WeatherUnits(temperature="C", precipitation="mm", wind="m/s", cloud="percent")
PRECIPITATION = list(WEATHER.columns).index("precipitation_um")
THOUSAND, TEN = 1000, 10


class ContextKind(Protocol):
    """One kind of context."""

    @property
    def name(self) -> str:
        """Its value in `context=`, and its field in the answer."""

    @property
    def views(self) -> Sequence[str]:
        """The views that it reads; without them it is not available."""

    async def rows(self, query: "ResolvedQuery", snapshot: ReadSnapshot, cells: MergedCells) -> Holidays | Weather:
        """The rows of all stores of the query, and where they come from. Reads from the snapshot of the answer.

        Raises:
            DefinitionNotPublishedError, CellMissingError: as for the cells of the metric itself.
        """


class PublicHolidays:
    """A row per store and holiday. Stores whose holidays are not known are listed, with the reason."""

    name = "holidays"
    views: Sequence[str] = ()

    async def rows(self, query: "ResolvedQuery", snapshot: ReadSnapshot, cells: MergedCells) -> Holidays:  # noqa: ARG002
        """`version` is that of the `holidays` library. Names are in the language of the country."""
        rows: list[Holiday] = []
        unknown: list[HolidaysUnknown] = []
        for of in query.stores:
            try:
                rows.extend(_holidays(of))
            except CountryUnknownError as error:
                unknown.append(HolidaysUnknown(of.store.id, error.code, error.message))
        return Holidays(VERSION, "public", rows, unknown)


def _holidays(of: "StoreQuery") -> Iterator[Holiday]:
    first, last = of.range.first, of.range.last
    for year in range(first.year, last.year + 1):
        for day, names in names_of(of.store, year).items():
            if first <= day < last:
                yield Holiday(of.store.id, day, names)


class ObservedWeather:
    """A row per store and point with observations; at `15m`, a row per hour."""

    name = "weather"
    views: Sequence[str] = (WEATHER.name,)

    async def rows(self, query: "ResolvedQuery", snapshot: ReadSnapshot, cells: MergedCells) -> Weather:
        """Means are over the observations of all `providers`; `observations` is their number."""
        grain = "hour" if query.grain == "15m" else query.grain
        stores = await asyncio.gather(*(_rows(of, _timeline(query, of), snapshot, cells) for of in query.stores))
        return Weather(grain, UNITS, [row for rows in stores for row in rows])


def _timeline(query: "ResolvedQuery", of: "StoreQuery") -> Timeline:
    """The points themselves, or the hours that quarter hours lie in."""
    line = of.timeline
    return timeline("hour", of.range.days, line.start, line.end) if query.grain == "15m" else line


async def _rows(of: "StoreQuery", line: Timeline, snapshot: ReadSnapshot, cells: MergedCells) -> list[WeatherRow]:
    read = await cells.read(snapshot, WEATHER, {of.store.id: [Span(line.start, line.end)]})
    observed = read[of.store.id][0]
    return await off_loop(CELLS_PER_POINT * len(observed), partial(_rows_of, of, line, snapshot, observed))


def _rows_of(of: "StoreQuery", line: Timeline, snapshot: ReadSnapshot, cells: Iterable[Cell]) -> list[WeatherRow]:
    found: dict[int, list[Cell]] = {}
    for cell in cells:
        found.setdefault(line.point_of(cell.key.window), []).append(cell)
    rows: list[WeatherRow] = []
    places = line.labels_until(round_up(seconds(snapshot.as_of_at)))
    for point, observed in sorted(found.items()):
        is_final = _is_final(snapshot, line.bounds[point].end, observed)
        row = _row(of.store.id, line.starts[point], observed, is_final=is_final)
        if places:
            place_in_week(row, places[point])
        rows.append(row)
    return rows


def _is_final(snapshot: ReadSnapshot, end: int, cells: Iterable[Cell]) -> bool:
    """Whether the windows until `end` are settled, and all their cells come from the batch layer alone."""
    settled = seconds(snapshot.pointer.cut) - int(WEATHER.settles_after.total_seconds())
    return not snapshot.missing and end <= settled and all(cell.speed is None for cell in cells)


def _row(store: str, start: str, cells: Sequence[Cell], *, is_final: bool) -> WeatherRow:
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
    """The mean of the providers in each window, summed over windows: so rain counts once, not once per provider."""
    windows: dict[int, list[int]] = {}
    for cell in cells:
        windows.setdefault(cell.key.window, []).append(int(cell.merged[PRECIPITATION] or 0))
    return sum((Fraction(sum(found), len(found)) for found in windows.values()), Fraction(0))


KINDS: dict[str, ContextKind] = {kind.name: kind for kind in (PublicHolidays(), ObservedWeather())}
NAMES = tuple(KINDS)


def context_names(text: str, views: Container[str]) -> tuple[str, ...]:
    """Parse `context=`: names of kinds, separated by commas.

    Args:
        text: the value of the parameter.
        views: the names of the registered views.

    Raises:
        UnknownNameError: no kind has this name.
        NotAvailableError: a view that the kind reads is not registered.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in KINDS:
            raise UnknownNameError("context", name, NAMES)
        if not all(view in views for view in KINDS[name].views):
            message = f"`context={name}` is not available: no view has it."
            raise NotAvailableError(message, do=f"Leave `{name}` out of `context`.")
    return names


async def context_rows(query: "ResolvedQuery", snapshot: ReadSnapshot, cells: MergedCells) -> Context:
    """The rows of every kind that the query asks for, by its name."""
    return cast("Context", {name: await KINDS[name].rows(query, snapshot, cells) for name in query.context})
