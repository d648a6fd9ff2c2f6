"""The table of endpoints, called in threads beside the event loop: for the dispatcher and for REST."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from master_dataset.webhooks.endpoint import Endpoint, EndpointState, RegisteredEndpoint
from master_dataset.webhooks.endpoint_table import EndpointTable
from speed_layer.webhooks.endpoint_worker import DesiredEndpoint

Found = TypeVar("Found")


class AsyncEndpoints:
    """Implements the `EndpointStore` of the dispatcher, and that of serving. Raises CassandraUnavailableError."""

    def __init__(self, table: EndpointTable) -> None:
        """`table` blocks."""
        self._table = table

    async def desired(self) -> Sequence[DesiredEndpoint]:
        """The endpoints that are not removed. Secrets that a former release has stored in clear are encrypted."""
        skips = await _in_thread(self._table.skips)
        known = await self.all()
        for each in known:
            if each.is_in_clear:
                await _in_thread(partial(self._table.encrypt, each.endpoint))
        return [
            DesiredEndpoint(
                each.endpoint,
                each.suspended_at is not None,
                each.state.failing_since.timestamp() if each.state.failing_since else None,
                skips.get(each.endpoint.id, frozenset()),
                each.has_begun,
            )
            for each in known
        ]

    async def all(self) -> Sequence[RegisteredEndpoint]:
        """The same with their state, the oldest first."""
        return await _in_thread(self._table.all)

    async def add(self, endpoint: Endpoint) -> None:
        """Call it from now on."""
        at = datetime.fromtimestamp(endpoint.made_ms / 1000, UTC)
        await _in_thread(lambda: self._table.add(endpoint, at))

    async def change(self, endpoint: Endpoint) -> None:
        """Change its URL and batch size."""
        await _in_thread(lambda: self._table.change(endpoint.id, endpoint.url, endpoint.batch))

    async def remove(self, endpoint: Endpoint) -> None:
        """Stop calls for good."""
        await _in_thread(lambda: self._table.remove(endpoint.id, datetime.now(UTC)))

    async def suspend(self, endpoint: Endpoint) -> None:
        """Stop calls until it is resumed."""
        await _in_thread(lambda: self._table.suspend(endpoint.id, datetime.now(UTC)))

    async def mark_begun(self, endpoint: Endpoint) -> None:
        """Record that its consumer group has committed a position."""
        await _in_thread(lambda: self._table.begin(endpoint.id, datetime.now(UTC)))

    async def resume(self, endpoint: Endpoint) -> None:
        """Call it again."""
        await _in_thread(lambda: self._table.resume(endpoint.id))

    async def renew(self, endpoint: Endpoint) -> None:
        """Sign with the secret of `endpoint` from now on."""
        await _in_thread(lambda: self._table.renew(endpoint))

    async def skip(self, endpoint: Endpoint, position: tuple[str, int, int], by: str) -> None:
        """Continue without this record."""
        await _in_thread(lambda: self._table.skip(endpoint.id, position, by, datetime.now(UTC)))

    async def save_state(self, endpoint: Endpoint, state: EndpointState) -> None:
        """Store its state."""
        await _in_thread(lambda: self._table.see(endpoint.id, state, datetime.now(UTC)))


async def _in_thread(work: Callable[[], Found]) -> Found:
    try:
        return await asyncio.to_thread(work)
    except CASSANDRA_UNAVAILABLE as error:
        message = f"Cassandra did not respond: {type(error).__name__}."
        raise CassandraUnavailableError(message, do="Try again; `galatea status` shows what is wrong.") from error
