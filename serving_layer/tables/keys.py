"""`api_keys`."""

from collections.abc import Sequence
from datetime import UTC, datetime

from serving_layer.keys.key import Key
from serving_layer.tables.bridge import Bridge, instant_of

_COLUMNS = "id, digest, tenant, scopes, name, created_at, expires_at, revoked_at"


class KeyTables:
    """KeyReader, and what the command line changes."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._select = bridge.prepare(f"SELECT {_COLUMNS} FROM api_keys")  # noqa: S608 - names of columns
        self._insert = bridge.prepare(
            f"INSERT INTO api_keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - likewise
        )

    async def keys(self) -> Sequence[Key]:
        """All of them; there are hundreds, not millions."""
        return [
            Key(id_, digest, tenant, frozenset(scopes or ()), name, instant_of(created), _end(expires), _end(revoked))
            for id_, digest, tenant, scopes, name, created, expires, revoked in await self._bridge.rows(self._select)
        ]

    async def keep(self, key: Key) -> None:
        """Write it, new or changed."""
        values = (key.id, key.digest, key.tenant, set(key.scopes), key.name, key.created_at)
        await self._bridge.rows(self._insert, *values, key.expires_at, key.revoked_at)


def _end(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=UTC)
