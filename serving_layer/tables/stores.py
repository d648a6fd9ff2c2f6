"""`registry_versions` and `stores`."""

from collections.abc import Sequence

from master_dataset.registry.stores import Store
from serving_layer.tables.bridge import Bridge


class StoreTables:
    """StoreReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._version = bridge.prepare("SELECT version FROM registry_versions WHERE name = 'stores'")
        self._stores = bridge.prepare("SELECT body FROM stores")

    async def version(self) -> int:
        """0 until stores are loaded for the first time."""
        rows = await self._bridge.rows(self._version)
        return rows[0][0] if rows else 0

    async def stores(self) -> Sequence[Store]:
        """All of them; there are hundreds, not millions."""
        return [Store.from_json(body) for (body,) in await self._bridge.rows(self._stores)]
