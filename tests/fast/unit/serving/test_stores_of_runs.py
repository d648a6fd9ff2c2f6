"""Which stores a run has blocks for is read by month, and kept."""

import asyncio
from datetime import date
from typing import Any, cast

from cassandra.util import Date

from serving_layer.tables import AsyncSession, BatchTables
from views.core.cut import month_of


class Days:
    """A session that knows for which stores a run has blocks, and what was asked."""

    def __init__(self, stores: dict[date, str]) -> None:
        self.stores, self.asked = stores, list[tuple[Any, ...]]()

    def prepare(self, cql: str) -> str:
        return cql

    async def rows(self, cql: str, run: str, view: str, first: date, end: date) -> list[tuple[Any, ...]]:
        assert "day >= ? AND day < ?" in cql
        self.asked.append((run, view, first, end))
        return [(Date(day), stores) for day, stores in self.stores.items() if first <= day < end]


def test_a_month_has_its_days_alone_and_equal_days_share_one_set() -> None:
    days = (date(2026, 11, 30), date(2026, 12, 1), date(2026, 12, 30), date(2026, 12, 31), date(2027, 1, 1))
    session = Days({day: '["1", "2"]' if day.day != 31 else '["2"]' for day in days})

    found = asyncio.run(BatchTables(cast("AsyncSession", session)).stores_of("r", "sales", date(2026, 12, 1)))

    assert found == {days[1]: {"1", "2"}, days[2]: {"1", "2"}, days[3]: {"2"}}
    assert found[days[1]] is found[days[2]]


def test_every_month_ends_where_the_next_one_begins() -> None:
    session = Days({})
    months = sorted({month_of(date.fromordinal(day)) for day in range(date(2027, 1, 1).toordinal(), 740_500)})

    async def read() -> None:
        for month in months:
            await BatchTables(cast("AsyncSession", session)).stores_of("r", "sales", month)

    asyncio.run(read())
    assert [end for *_, end in session.asked][:-1] == months[1:]
