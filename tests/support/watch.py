"""What the processes of a World say of themselves."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from serving_layer.admin.ledger import Ledger
from serving_layer.alerts.history import Kept
from serving_layer.health.watched import Found, Hook, Measured, Noticed
from tests.support.world import World


class WorldWatch:
    """WatchReader. A test fills in what was measured and noticed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.measured: list[Measured] = []
        self.passing: dict[str, list[Noticed]] = {}
        self.looked_at: int | None = None
        self.hooked: list[Hook] = []
        self.kept = Kept(None, None)
        self.stats: dict[str, Any] = {}

    async def lag(self, reader: str) -> Sequence[Measured]:
        return [each for each in self.measured if each.reader == reader]

    async def noticed(self, name: str, after: datetime) -> Sequence[Noticed]:
        return [each for each in self.passing.get(name, ()) if each.at > after]

    async def hooks(self) -> Sequence[Hook]:
        return self.hooked

    async def alerts(self) -> Kept:
        return self.kept

    async def alerts_looked_at(self) -> int:
        return max(each.publication for each in self.world.history) if self.looked_at is None else self.looked_at

    async def publication(self, number: int) -> Found:
        [entry] = [entry for entry in self.world.history if entry.publication == number]
        return Found(entry.published_at, self.stats)

    async def ledgers(self, number: int) -> Sequence[Ledger]:
        subjects = [str(each) for each in range(number, 0, -1)]
        return [self.world.ledgers[each] for each in subjects if each in self.world.ledgers]
