"""One endpoint's share of the alerts: those of its tenant, in order for each store."""

from collections.abc import Sequence
from typing import Protocol

from master_dataset.consuming import Done, Record, Refused, Verdict
from master_dataset.endpoint import Endpoint
from speed_layer.webhooks.sender import Sender
from speed_layer.webhooks.told import told


class Undelivered(Protocol):
    """Where alerts are kept that an endpoint has refused for good."""

    async def keep(self, endpoint: Endpoint, record: Record, why: str) -> None:
        """Returns when it is kept. Keeping it again is harmless."""


class Delivery:
    """A Taker. `delivered` and `refused` count records since the process began."""

    def __init__(self, endpoint: Endpoint, sender: Sender, undelivered: Undelivered) -> None:
        """`sender` calls the endpoint."""
        self._endpoint, self._sender, self._undelivered = endpoint, sender, undelivered
        self.delivered = self.refused = 0

    async def take(self, records: Sequence[Record]) -> Verdict:
        """Send what is the tenant's. A refusal of many is one of some: the caller tries them one by one."""
        read = [(record, told(record.value)) for record in records]
        own = [(record, each.id) for record, each in read if each is not None and each.tenant == self._endpoint.tenant]
        if not own:
            return Done()
        verdict = await self._sender.send([record for record, _ in own], [id_ for _, id_ in own])
        if isinstance(verdict, Done):
            self.delivered += len(own)
        return verdict

    async def put_aside(self, record: Record, refused: Refused) -> None:
        """Keep it for the operator."""
        await self._undelivered.keep(self._endpoint, record, refused.why)
        self.refused += 1
