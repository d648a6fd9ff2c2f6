"""What a webhook needs to know of an alert's record: whose it is, and by which id a receiver drops its repetition.

One endpoint's share of the alerts: those of its tenant, in order for each store.

`undelivered`: alerts that an endpoint has refused for good, as dead letters beside those of events.

One appender writes it: the dispatcher. The topic of such a letter is its endpoint's, so what two endpoints refuse is
two letters.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from prometheus_client import Counter

from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.consumer import ConsumerRecord, Done, HandlerResult, Reject, Retry
from master_dataset.parsing.results import Reason
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.client import WebhookClient


class AlertHeader(msgspec.Struct, frozen=True):
    """Two fields of `views.alerts.alert.Alert`. Each record has an id of its own: that an alert is over is news."""

    alert_id: str
    tenant: str


_READ = msgspec.json.Decoder(AlertHeader)


def read_header(value: bytes) -> AlertHeader | None:
    """None if it is no record of an alert: who writes the topic writes nothing else, so it is nobody's."""
    try:
        return _READ.decode(value)
    except msgspec.DecodeError:
        return None


SKIPPED = "an operator has skipped it"
DELIVERED_ALERTS = Counter(
    "galatea_webhook_alerts",
    "Alerts that endpoints were told of, or went on without, since the process started.",
    ("outcome",),
)
Place = tuple[str, int, int]
"""Topic, partition, offset."""


class Undelivered(Protocol):
    """Where alerts are kept that an endpoint has refused for good."""

    async def keep(self, endpoint: Endpoint, record: ConsumerRecord, why: str) -> None:
        """Returns when it is kept. Keeping it again is harmless. Unavailable."""


class Delivery:
    """A Taker. `skipped`: records that an operator wants to go on without.

    `refusing_since`: in seconds since 1970, the first refusal after which nothing was delivered; None if all is well.
    """

    def __init__(self, endpoint: Endpoint, sender: WebhookClient, undelivered: Undelivered) -> None:
        """`sender` calls the endpoint."""
        self._endpoint, self._sender, self._undelivered = endpoint, sender, undelivered
        self.skipped: frozenset[Place] = frozenset()
        self.delivered_at: float | None = None
        self.refusing_since: float | None = None

    def accepts(self, record: ConsumerRecord) -> bool:
        """Whether it is an alert of the tenant."""
        said = read_header(record.value)
        return said is not None and said.tenant == self._endpoint.tenant

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        """Send them. A refusal of many is one of some: the caller tries them one by one."""
        first = records[0]
        if (first.topic, first.partition, first.offset) in self.skipped:
            return Reject(SKIPPED)
        ids = [said.alert_id for record in records if (said := read_header(record.value)) is not None]
        verdict = await self._sender.send(records, ids)
        if isinstance(verdict, Done):
            self.delivered_at, self.refusing_since = self._sender.answered_at, None
            DELIVERED_ALERTS.labels("delivered").inc(len(records))
        return verdict

    async def store_rejected(self, record: ConsumerRecord, refused: Reject) -> Done | Retry:
        """Keep it for the operator. As long as it cannot be kept it waits, and its store behind it."""
        try:
            await self._undelivered.keep(self._endpoint, record, refused.why)
        except DependencyUnavailableError as error:
            return Retry(error.message)
        if refused.why != SKIPPED:
            self.refusing_since = self.refusing_since or self._sender.answered_at
        DELIVERED_ALERTS.labels("skipped" if refused.why == SKIPPED else "refused").inc()
        return Done()


class DeadLetterNotStoredError(DependencyUnavailableError):
    """A dead letter could not be written; what it is about waits until it can."""


class UndeliveredAlert(NamedTuple):
    """An alert that an endpoint has refused. `why`: one sentence without its end."""

    endpoint: Endpoint
    record: ConsumerRecord
    why: str

    def row(self, topics: str) -> dict[str, object]:
        """As a dead letter. `topics`: what the topics of such letters begin with."""
        record = self.record
        return {
            "topic": f"{topics}{self.endpoint.id}",
            "partition": record.partition,
            "offset": record.offset,
            "received_at": datetime.fromtimestamp(record.received_ms / 1000, UTC),
            "reason": Reason.ALERT_DELIVERY_REJECTED.value,
            "field": "",
            "sentence": f"{self.why[0].upper()}{self.why[1:]}.",
            "key": record.key,
            "value": record.value,
            "headers": [],
        }


class UndeliveredTable:
    """Undelivered, in Delta, without Spark. Belongs to one event loop."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._root = root
        self._thread = ThreadPoolExecutor(1, "undelivered")
        self._one_commit = asyncio.Lock()
        self._waiting: list[UndeliveredAlert] = []
        self._next: asyncio.Task[None] | None = None
        self._is_made = False

    async def keep(self, endpoint: Endpoint, record: ConsumerRecord, why: str) -> None:
        """Append one. Kept twice after a crash, it is one: readers take a row of each place. LetterNotKept."""
        self._waiting.append(UndeliveredAlert(endpoint, record, why))
        if self._next is None:
            self._next = asyncio.ensure_future(self._append_all())
        await asyncio.shield(self._next)  # whoever waits no longer takes nothing from the others

    async def _append_all(self) -> None:
        """What has come until the commit before is done goes into the next one."""
        async with self._one_commit:
            letters, self._waiting, self._next = self._waiting, [], None
            await asyncio.get_running_loop().run_in_executor(self._thread, self.append, letters)

    def append(self, letters: Sequence[UndeliveredAlert]) -> None:
        """Keep them, in one commit. LetterNotKept."""
        # Loaded with the first letter: an engine of 0.1 GB would wait for it in vain wherever nothing is refused.
        import pyarrow as pa  # noqa: PLC0415
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        from master_dataset.dead_letters.table import TOPIC, UNDELIVERED, create, schema  # noqa: PLC0415
        from master_dataset.delta.commit_intents import append  # noqa: PLC0415

        path = f"{self._root}/{UNDELIVERED}"
        try:
            if "://" not in path:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            if not self._is_made:
                create(path)
            self._is_made = True
            rows = pa.Table.from_pylist([each.row(TOPIC) for each in letters], schema())
            append(path, rows)
        except (OSError, ValueError, DeltaError) as error:  # of a line that cannot be read
            message = f"the dead letter could not be kept: {type(error).__name__}"
            raise DeadLetterNotStoredError(message, do="galatea doctor") from error
