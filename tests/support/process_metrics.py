"""What the processes of a World report about themselves."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from serving_layer.admin.ledger import Ledger
from serving_layer.alerts.history import HistoryCoverage
from serving_layer.health.watched import AlarmEvent, EndpointHealth, LagMeasurement, PublicationStats
from tests.support.world import World


class WorldWatch:
    """WatchReader. A test fills in what was measured and noticed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.measured: list[LagMeasurement] = []
        self.passing: dict[str, list[AlarmEvent]] = {}
        self.looked_at: int | None = None
        self.hooked: list[EndpointHealth] = []
        self.kept = HistoryCoverage(None, None)
        self.stats: dict[str, Any] = {}

    async def lag(self, reader: str) -> Sequence[LagMeasurement]:
        return [each for each in self.measured if each.reader == reader]

    async def noticed(self, name: str, after: datetime) -> Sequence[AlarmEvent]:
        return [each for each in self.passing.get(name, ()) if each.at > after]

    async def endpoints(self) -> Sequence[EndpointHealth]:
        return self.hooked

    async def alerts(self) -> HistoryCoverage:
        return self.kept

    async def alerts_looked_at(self) -> int:
        return max(each.publication for each in self.world.history) if self.looked_at is None else self.looked_at

    async def publication(self, number: int) -> PublicationStats:
        [entry] = [entry for entry in self.world.history if entry.publication == number]
        return PublicationStats(entry.published_at, self.stats)

    async def ledgers(self, number: int) -> Sequence[Ledger]:
        subjects = [str(each) for each in range(number, 0, -1)]
        return [self.world.ledgers[each] for each in subjects if each in self.world.ledgers]
