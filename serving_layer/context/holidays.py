"""Public holidays beside the points: by each store's country and subdivision, on its local dates."""

from collections.abc import Iterator, Sequence

from serving_layer.compare.public_holidays import VERSION, names_of
from serving_layer.context.kind import Row
from serving_layer.context.reading import Reading
from serving_layer.errors import CountryUnknown
from serving_layer.query.resolved_query import Asked, StoreTime


class Holidays:
    """A row per store and holiday. Stores whose holidays nobody knows are listed, with the reason."""

    name = "holidays"
    views: Sequence[str] = ()

    async def told(self, asked: Asked, reading: Reading) -> Row:  # noqa: ARG002 - a Kind
        """`version`: of the `holidays` library. Names are in the language of the country."""
        rows: list[Row] = []
        unknown: list[Row] = []
        for of in asked.stores:
            try:
                rows.extend(_rows(of))
            except CountryUnknown as error:
                unknown.append({"store": of.store.id, "reason": error.code, "detail": error.message})
        return {"version": VERSION, "category": "public", "rows": rows, "unknown": unknown}


def _rows(of: StoreTime) -> Iterator[Row]:
    first, last = of.at.first, of.at.last
    for year in range(first.year, last.year + 1):
        for day, names in names_of(of.store, year).items():
            if first <= day < last:
                yield {"store": of.store.id, "date": day, "names": names}
