"""Where endpoints are kept, asked beside the event loop: for whoever calls them, and for REST."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from deploy.cassandra import FAILURES
from master_dataset.errors import CassandraUnavailableError
from master_dataset.webhooks.endpoint import Endpoint, EndpointState, RegisteredEndpoint
from master_dataset.webhooks.endpoint_table import EndpointTable, Place
from speed_layer.webhooks.endpoint_worker import DesiredEndpoint

Found = TypeVar("Found")


class AsyncEndpoints:
    """`Endpoints` of the speed layer and of serving. Every method raises CassandraUnavailableError."""

    def __init__(self, table: EndpointTable) -> None:
        """`table` blocks."""
        self._table = table

    async def wanted(self) -> Sequence[DesiredEndpoint]:
        """Those that are not removed."""
        skips = await _beside(self._table.skips)
        return [
            DesiredEndpoint(
                each.endpoint,
                each.suspended_at is not None,
                each.state.failing_since.timestamp() if each.state.failing_since else None,
                skips.get(each.endpoint.id, frozenset()),
                each.has_begun,
            )
            for each in await self.all()
        ]

    async def all(self) -> Sequence[RegisteredEndpoint]:
        """Likewise, with how they are doing; the oldest first."""
        return await _beside(self._table.all)

    async def add(self, endpoint: Endpoint) -> None:
        """Call it from now on."""
        at = datetime.fromtimestamp(endpoint.made_ms / 1000, UTC)
        await _beside(lambda: self._table.add(endpoint, at))

    async def change(self, endpoint: Endpoint) -> None:
        """Its address and batch are these from now on."""
        await _beside(lambda: self._table.change(endpoint.id, endpoint.url, endpoint.batch))

    async def remove(self, endpoint: Endpoint) -> None:
        """Call it no more."""
        await _beside(lambda: self._table.remove(endpoint.id, datetime.now(UTC)))

    async def suspend(self, endpoint: Endpoint) -> None:
        """Call it no more until somebody resumes it."""
        await _beside(lambda: self._table.suspend(endpoint.id, datetime.now(UTC)))

    async def begun(self, endpoint: Endpoint) -> None:
        """From now on the broker knows where it stands."""
        await _beside(lambda: self._table.begin(endpoint.id, datetime.now(UTC)))

    async def resume(self, endpoint: Endpoint) -> None:
        """Call it again."""
        await _beside(lambda: self._table.resume(endpoint.id))

    async def renew(self, endpoint: Endpoint, secret: str) -> None:
        """Sign with this secret from now on."""
        await _beside(lambda: self._table.renew(endpoint.id, secret))

    async def skip(self, endpoint: Endpoint, place: Place, by: str) -> None:
        """Go on without this record."""
        await _beside(lambda: self._table.skip(endpoint.id, place, by, datetime.now(UTC)))

    async def see(self, endpoint: Endpoint, state: EndpointState) -> None:
        """How it is doing."""
        await _beside(lambda: self._table.see(endpoint.id, state, datetime.now(UTC)))


async def _beside(work: Callable[[], Found]) -> Found:
    try:
        return await asyncio.to_thread(work)
    except FAILURES as error:
        message = f"Cassandra did not answer: {type(error).__name__}."
        raise CassandraUnavailableError(message, do="Ask again; `galatea status` says what is wrong.") from error
