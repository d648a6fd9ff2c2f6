"""Delivers the alerts of a tenant to one endpoint, and stores the alerts that it rejects.

Rejected alerts become dead letters in the table `undelivered`, next to those of events. The topic of such a dead letter
is that of its endpoint, so that an alert can be a dead letter of several endpoints.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import msgspec
from prometheus_client import Counter

from master_dataset.dead_letters.undelivered import TOPIC, UndeliveredRecord, UndeliveredRecords
from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.consumer import ConsumerRecord, Done, HandlerResult, Reject, Retry
from master_dataset.parsing.results import Reason
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.client import WebhookClient
from views.alerts.alert import Alert
from views.alerts.signatures import AlertSignatures, RecordPlace


class AlertHeader(msgspec.Struct, frozen=True):
    """Two fields of an alert. Each record has its own id, including one that resolves an alert."""

    alert_id: str
    tenant: str


_READ = msgspec.json.Decoder(AlertHeader)


def read_header(value: bytes) -> AlertHeader | None:
    """None if another program wrote the record. The rest of the alert is not checked."""
    try:
        return _READ.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def is_alert(value: bytes) -> bool:
    """Whether it is a whole and valid alert, which receivers can read."""
    try:
        Alert.from_json(value)
    except msgspec.ValidationError:
        return False
    return True


SKIPPED = "an operator has skipped it"
DELIVERED_ALERTS = Counter(
    "galatea_webhook_alerts",
    "Alerts that were delivered to endpoints, rejected or skipped since the process started.",
    ("outcome",),
)
Place = tuple[str, int, int]
"""Topic, partition, offset."""


class Undelivered(Protocol):
    """Where alerts are stored that an endpoint has rejected."""

    async def keep(self, endpoint: Endpoint, record: ConsumerRecord, why: str) -> None:
        """Returns when it is stored. Storing it again is harmless. DependencyUnavailableError."""


class Delivery:
    """The `Handler` of one endpoint's consumer: sends the alerts of its tenant.

    Attributes:
        skipped: Records that an operator has skipped.
        delivered_at: When the endpoint accepted alerts last, in seconds since 1970.
        refusing_since: When it rejected the first of the alerts since then; None if it has rejected none.
    """

    def __init__(
        self, endpoint: Endpoint, client: WebhookClient, undelivered: Undelivered, signatures: AlertSignatures
    ) -> None:
        """`client` calls the endpoint. `signatures`: say which alerts are ours, and may be sent in our name."""
        self._endpoint, self._client, self._undelivered = endpoint, client, undelivered
        self._signatures = signatures
        self.skipped: frozenset[Place] = frozenset()
        self.delivered_at: float | None = None
        self.refusing_since: float | None = None

    def accepts(self, record: ConsumerRecord) -> bool:
        """Whether it is an alert of the tenant. What is no alert of ours is left out; the alert history keeps it."""
        header = read_header(record.value)  # first, because most records are of other tenants
        if header is None or header.tenant != self._endpoint.tenant:
            return False
        place = RecordPlace(record.topic, record.partition, record.offset)
        return self._signatures.is_ours(place, record.value, record.headers) and is_alert(record.value)

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        """Send these alerts. If several are rejected, the caller tries them one by one."""
        first = records[0]
        if (first.topic, first.partition, first.offset) in self.skipped:
            return Reject(SKIPPED)
        ids = [header.alert_id for record in records if (header := read_header(record.value)) is not None]
        result = await self._client.send(records, ids)
        if isinstance(result, Done):
            self.delivered_at, self.refusing_since = self._client.answered_at, None
            DELIVERED_ALERTS.labels("delivered").inc(len(records))
        return result

    async def store_rejected(self, record: ConsumerRecord, rejection: Reject) -> Done | Retry:
        """Store a rejected alert as a dead letter. While that is impossible, its store waits."""
        try:
            await self._undelivered.keep(self._endpoint, record, rejection.why)
        except DependencyUnavailableError as error:
            return Retry(error.message)
        if rejection.why != SKIPPED:
            self.refusing_since = self.refusing_since or self._client.answered_at
        DELIVERED_ALERTS.labels("skipped" if rejection.why == SKIPPED else "refused").inc()
        return Done()


class UndeliveredAlert(NamedTuple):
    """An alert that an endpoint has rejected. `why`: one sentence without a full stop."""

    endpoint: Endpoint
    record: ConsumerRecord
    why: str

    def dead_letter(self) -> UndeliveredRecord:
        """It as a dead letter, at the place of the alert in a topic of the endpoint's own."""
        record, topic = self.record, f"{TOPIC}{self.endpoint.id}"
        sentence = f"{self.why[0].upper()}{self.why[1:]}."
        place = (topic, record.partition, record.offset, record.received_ms)
        return UndeliveredRecord(*place, Reason.ALERT_DELIVERY_REJECTED, sentence, record.key, record.value)


class UndeliveredTable:
    """Implements `Undelivered` with Delta Lake, without Spark. Belongs to one event loop."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._records = UndeliveredRecords(root)
        self._thread = ThreadPoolExecutor(1, "undelivered")
        self._one_commit = asyncio.Lock()
        self._waiting: list[UndeliveredAlert] = []
        self._next: asyncio.Task[None] | None = None

    async def keep(self, endpoint: Endpoint, record: ConsumerRecord, why: str) -> None:
        """Append one. After a crash it may have two rows: readers take one per position. DeadLetterNotStoredError."""
        self._waiting.append(UndeliveredAlert(endpoint, record, why))
        if self._next is None:
            self._next = asyncio.ensure_future(self._append_all())
        await asyncio.shield(self._next)  # if one caller is cancelled, the others still wait

    async def _append_all(self) -> None:
        """Alerts that arrive during a commit go into the next one."""
        async with self._one_commit:
            alerts, self._waiting, self._next = self._waiting, [], None
            await asyncio.get_running_loop().run_in_executor(self._thread, self.append, alerts)

    def append(self, alerts: Sequence[UndeliveredAlert]) -> None:
        """Append these in one commit. DeadLetterNotStoredError."""
        self._records.append([each.dead_letter() for each in alerts])
