"""What the processes of a World say of themselves."""

from collections.abc import Sequence

from serving_layer.watched import Found, Measured
from tests.world.world import World


class WorldWatch:
    """WatchReader. A test fills in what was measured."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.measured: list[Measured] = []

    async def lag(self, reader: str) -> Sequence[Measured]:
        return [each for each in self.measured if each.reader == reader]

    async def publication(self, number: int) -> Found:
        [entry] = [entry for entry in self.world.history if entry.publication == number]
        return Found(entry.published_at)
