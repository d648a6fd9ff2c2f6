"""The tables that the api processes share.

SessionTables   page_sessions, page_sessions_of_keys
RateTables      api_rates
"""

from collections.abc import Mapping, Sequence

import orjson

from serving_layer.keys.rates import Rates
from serving_layer.pages.sessions import SessionPlace, StoredSession
from serving_layer.tables.async_session import AsyncSession, instant_of

_COMPONENT = "api"


class SessionTables:
    """Implements `SessionStore` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._insert = session.prepare("INSERT INTO page_sessions (id, sealed, ends_at) VALUES (?, ?, ?) USING TTL ?")
        self._select = session.prepare("SELECT sealed, ends_at FROM page_sessions WHERE id = ?")
        self._delete = session.prepare("DELETE FROM page_sessions WHERE id = ?")
        self._own = session.prepare(
            "INSERT INTO page_sessions_of_keys (owner, ends_at, id) VALUES (?, ?, ?) USING TTL ?"
        )
        self._owned = session.prepare("SELECT ends_at, id FROM page_sessions_of_keys WHERE owner = ? LIMIT ?")
        self._disown = session.prepare("DELETE FROM page_sessions_of_keys WHERE owner = ? AND ends_at = ? AND id = ?")

    async def put(self, place: SessionPlace, sealed: bytes, seconds: int) -> None:
        """Write rows that end by themselves; first the one by which it is found among those of its key."""
        await self._session.rows(self._own, *place, seconds)
        await self._session.rows(self._insert, place.digest, sealed, place.ends_at, seconds)

    async def of_owner(self, owner: bytes, most: int) -> Sequence[SessionPlace]:
        """The sessions of the owner, in the order of the table."""
        rows = await self._session.rows(self._owned, owner, most)
        return [SessionPlace(owner, instant_of(ends_at), digest) for ends_at, digest in rows]

    async def get(self, digest: bytes) -> StoredSession | None:
        """The session with this digest; None if there is none, or it has ended."""
        for sealed, ends_at in await self._session.rows(self._select, digest):
            return StoredSession(sealed, instant_of(ends_at))
        return None

    async def remove(self, place: SessionPlace) -> None:
        """Delete its rows."""
        await self._session.rows(self._delete, place.digest)
        await self._session.rows(self._disown, *place)


class RateTables:
    """RateReports. All rows are in one partition, one for each process."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._insert = session.prepare("INSERT INTO api_rates (component, process, rates) VALUES (?, ?, ?) USING TTL ?")
        self._select = session.prepare("SELECT process, rates FROM api_rates WHERE component = ?")

    async def report(self, process: str, rates: Rates, seconds: int) -> None:
        """Write the row of a process, which ends by itself."""
        await self._session.rows(self._insert, _COMPONENT, process, orjson.dumps(dict(rates)).decode(), seconds)

    async def reports(self) -> Mapping[str, Rates]:
        """The rates that each process reported last."""
        rows = await self._session.rows(self._select, _COMPONENT)
        return {process: orjson.loads(rates) for process, rates in rows}
