"""Public holidays as context: by each store's country and subdivision, on its local dates."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from serving_layer.compare.public_holidays import VERSION, names_of
from serving_layer.errors import CountryUnknownError
from serving_layer.query.snapshot import ReadSnapshot
from serving_layer.responses.metrics import Holiday, Holidays, HolidaysUnknown
from serving_layer.store.cells import MergedCells

if TYPE_CHECKING:
    from serving_layer.query.resolve import ResolvedQuery, StoreQuery


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
