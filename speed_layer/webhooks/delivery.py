"""One endpoint's share of the alerts: those of its tenant, in order for each store."""

from collections.abc import Sequence
from typing import Protocol

from prometheus_client import Counter

from master_dataset.errors import Unavailable
from master_dataset.kafka.consumer import Again, Done, Record, Refused, Verdict
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.sender import Sender
from speed_layer.webhooks.told import told

SKIPPED = "an operator has skipped it"
TOLD = Counter(
    "galatea_webhook_alerts",
    "Alerts that endpoints were told of, or went on without, since the process started.",
    ("outcome",),
)
Place = tuple[str, int, int]
"""Topic, partition, offset."""


class Undelivered(Protocol):
    """Where alerts are kept that an endpoint has refused for good."""

    async def keep(self, endpoint: Endpoint, record: Record, why: str) -> None:
        """Returns when it is kept. Keeping it again is harmless. Unavailable."""


class Delivery:
    """A Taker. `skipped`: records that an operator wants to go on without.

    `refusing_since`: in seconds since 1970, the first refusal after which nothing was delivered; None if all is well.
    """

    def __init__(self, endpoint: Endpoint, sender: Sender, undelivered: Undelivered) -> None:
        """`sender` calls the endpoint."""
        self._endpoint, self._sender, self._undelivered = endpoint, sender, undelivered
        self.skipped: frozenset[Place] = frozenset()
        self.delivered_at: float | None = None
        self.refusing_since: float | None = None

    def wants(self, record: Record) -> bool:
        """Whether it is an alert of the tenant."""
        said = told(record.value)
        return said is not None and said.tenant == self._endpoint.tenant

    async def take(self, records: Sequence[Record]) -> Verdict:
        """Send them. A refusal of many is one of some: the caller tries them one by one."""
        first = records[0]
        if (first.topic, first.partition, first.offset) in self.skipped:
            return Refused(SKIPPED)
        ids = [said.alert_id for record in records if (said := told(record.value)) is not None]
        verdict = await self._sender.send(records, ids)
        if isinstance(verdict, Done):
            self.delivered_at, self.refusing_since = self._sender.answered_at, None
            TOLD.labels("delivered").inc(len(records))
        return verdict

    async def put_aside(self, record: Record, refused: Refused) -> Done | Again:
        """Keep it for the operator. As long as it cannot be kept it waits, and its store behind it."""
        try:
            await self._undelivered.keep(self._endpoint, record, refused.why)
        except Unavailable as error:
            return Again(error.message)
        if refused.why != SKIPPED:
            self.refusing_since = self.refusing_since or self._sender.answered_at
        TOLD.labels("skipped" if refused.why == SKIPPED else "refused").inc()
        return Done()
