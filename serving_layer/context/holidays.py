"""Public holidays beside the points: by each store's country and subdivision, on its local dates."""

from collections.abc import Iterator, Sequence

from serving_layer.compare.public_holidays import VERSION, names_of
from serving_layer.context.reading import Reading
from serving_layer.errors import CountryUnknown
from serving_layer.query.resolved_query import Asked, StoreTime
from serving_layer.responses.metrics import Holiday, HolidaysUnknown
from serving_layer.responses.metrics import Holidays as HolidaysContext


class Holidays:
    """A row per store and holiday. Stores whose holidays nobody knows are listed, with the reason."""

    name = "holidays"
    views: Sequence[str] = ()

    async def told(self, asked: Asked, reading: Reading) -> HolidaysContext:  # noqa: ARG002 - a Kind
        """`version`: of the `holidays` library. Names are in the language of the country."""
        rows: list[Holiday] = []
        unknown: list[HolidaysUnknown] = []
        for of in asked.stores:
            try:
                rows.extend(_rows(of))
            except CountryUnknown as error:
                unknown.append(HolidaysUnknown(of.store.id, error.code, error.message))
        return HolidaysContext(VERSION, "public", rows, unknown)


def _rows(of: StoreTime) -> Iterator[Holiday]:
    first, last = of.at.first, of.at.last
    for year in range(first.year, last.year + 1):
        for day, names in names_of(of.store, year).items():
            if first <= day < last:
                yield Holiday(of.store.id, day, names)
