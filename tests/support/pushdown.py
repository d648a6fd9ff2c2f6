"""A server of SQL that reads all rows of each table: what push-down must never change the result of."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Self

from master_dataset.registry.stores import GroupVersion, Store
from serving_layer.sql.table import EVERYTHING, Needed
from tests.support import World, receipt
from tests.support.world_sql import AskingSql

FIRST = datetime(2026, 3, 26, tzinfo=UTC)


def history() -> World:
    """Three stores with receipts of eight days, around a change of summer time, and corrections of a publication."""
    groups = (GroupVersion(None, {"region": "north"}), GroupVersion(FIRST.date(), {"region": "south"}))
    world = World(
        Store(id="0", timezone="Europe/Bratislava", name="Null", groups=groups),
        Store(id="1", timezone="America/New_York", name="One"),
        Store(id="00", timezone="Asia/Tokyo", name="Two"),
    )
    for number in range(72):
        at = FIRST + timedelta(hours=2.5 * number)
        id_ = list(world.stores)[number % 3]
        world.receive(receipt(at.isoformat(), minor=100 + number, number=number, store=id_), at)
        if number in (20, 40):
            world.receive(receipt((at - timedelta(days=1)).isoformat(), minor=7, number=100 + number, store=id_), at)
            world.rebuild((at + timedelta(hours=1)).isoformat())
    world.pass_time("2026-04-03T10:00:00Z")
    return world


class ReadingEverything(AskingSql):
    """Answers the same, without bounds."""

    def __enter__(self) -> Self:
        async def needed(_sql: str, _of: Hashable, find: Callable[[], Awaitable[Sequence[Needed]]]) -> Sequence[Needed]:
            return [replace(each, span=EVERYTHING, values={}) for each in await find()]

        self.sessions.needed = needed  # type: ignore[assignment, method-assign]  # of this server alone
        super().__enter__()
        return self
