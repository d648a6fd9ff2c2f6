"""Webhooks for REST, pages and the command line: list, create, change, test, resume and remove them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from msgspec import UNSET

from master_dataset.errors import UnknownNameError
from master_dataset.registry.tenants import checked_tenant
from master_dataset.webhooks.endpoint import Endpoint, Network, RegisteredEndpoint, check_url, new_id, new_secret
from serving_layer.errors import NotBlockingError, TooManyWebhooksError
from serving_layer.fair_semaphore import OneAtATime
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.webhooks import BlockingRecord, Webhook, WebhookLag, WebhookTrial

RecordPosition = tuple[str, int, int]


class WebhookStore(Protocol):
    """Where webhooks are stored. Every method raises CassandraUnavailableError."""

    async def all(self) -> Sequence[RegisteredEndpoint]:
        """All that are not removed, oldest first."""

    async def add(self, endpoint: Endpoint) -> None:
        """Store a new webhook."""

    async def change(self, endpoint: Endpoint) -> None:
        """Store its address and batch size."""

    async def remove(self, endpoint: Endpoint) -> None:
        """Remove it with its secret."""

    async def resume(self, endpoint: Endpoint) -> None:
        """End its suspension."""

    async def renew(self, endpoint: Endpoint) -> None:
        """Replace its secret."""

    async def skip(self, endpoint: Endpoint, place: RecordPosition, by: str) -> None:
        """Skip this record."""


class WebhookTester(Protocol):
    """Makes test calls."""

    async def call(self, endpoint: Endpoint) -> WebhookTrial:
        """Make one signed call without alerts. Raises TooBusyError."""


@dataclass(frozen=True)
class WebhookService:
    """Manages webhooks. A tenant of None stands for callers that see those of all tenants.

    `most`: webhooks per tenant. `allowed`: private networks that webhooks may be in.
    """

    endpoints: WebhookStore
    trying: WebhookTester
    most: int
    now: Callable[[], datetime]
    allowed: Sequence[Network] = ()
    _adding: OneAtATime = field(default_factory=OneAtATime, repr=False, compare=False)

    async def listed(self, tenant: str | None) -> Sequence[RegisteredEndpoint]:
        """The webhooks of the tenant, oldest first."""
        return [each for each in await self.endpoints.all() if tenant is None or each.endpoint.tenant == tenant]

    async def found(self, tenant: str | None, id_: str) -> RegisteredEndpoint:
        """One webhook of the tenant. Raises UnknownNameError, also for webhooks of other tenants."""
        known = {each.endpoint.id: each for each in await self.listed(tenant)}
        if id_ not in known:
            raise UnknownNameError("webhook", id_, known, do="`GET /v1/webhooks` lists those that there are.")
        return known[id_]

    async def make(self, tenant: str, url: str, batch: int) -> RegisteredEndpoint:
        """Create a webhook. Raises RequestError for the tenant, BadEndpointError and TooManyWebhooksError."""
        checked_tenant(tenant)
        check_url(url, self.allowed)
        async with self._adding.hold(tenant):
            if len(await self.listed(tenant)) >= self.most:
                message = f"The tenant `{tenant}` has {self.most} webhooks, and may have no more."
                raise TooManyWebhooksError(message, do="Remove one that is no longer needed.")
            made_ms = int(self.now().timestamp() * 1000)
            endpoint = Endpoint(new_id(), tenant, url, new_secret(), batch, made_ms)
            await self.endpoints.add(endpoint)
        return RegisteredEndpoint(endpoint)

    async def change(self, found: RegisteredEndpoint, url: str | None, batch: int | None) -> RegisteredEndpoint:
        """Change address and batch size; None leaves them as they are. Raises BadEndpointError."""
        if url is not None:
            check_url(url, self.allowed)
        old = found.endpoint
        changed = replace(old, url=old.url if url is None else url, batch=old.batch if batch is None else batch)
        await self.endpoints.change(changed)
        return found._replace(endpoint=changed)

    async def rotate(self, found: RegisteredEndpoint) -> RegisteredEndpoint:
        """Replace the secret."""
        renewed = replace(found.endpoint, secret=new_secret())
        await self.endpoints.renew(renewed)
        return found._replace(endpoint=renewed, is_in_clear=False)

    async def resume(self, found: RegisteredEndpoint) -> RegisteredEndpoint:
        """End the suspension, if it is suspended."""
        if found.suspended_at is not None:
            await self.endpoints.resume(found.endpoint)
        state = replace(found.state, failing_since=None) if found.suspended_at else found.state
        return found._replace(suspended_at=None, state=state)

    async def skip(self, found: RegisteredEndpoint, record: str, by: str) -> None:
        """Skip a record that blocks its store. Raises NotBlockingError for any other record."""
        blocking = {each.id: each for each in found.state.blocking}
        if record not in blocking:
            message = f"The record `{record}` does not block the webhook `{found.endpoint.id}`."
            known = ", ".join(f"`{id_}`" for id_ in blocking)
            raise NotBlockingError(message, do=f"Name one of these: {known}." if known else "Nothing blocks it now.")
        each = blocking[record]
        await self.endpoints.skip(found.endpoint, (each.topic, each.partition, each.offset), by)


def webhook_response(found: RegisteredEndpoint, now: datetime, *, with_secret: bool = False) -> Webhook:
    """The webhook as the API shows it. `with_secret`: only right after the secret was made."""
    endpoint, state = found.endpoint, found.state
    waits = (now - state.oldest_at).total_seconds() if state.oldest_at else 0.0
    return Webhook(
        id=endpoint.id,
        tenant=endpoint.tenant,
        url=endpoint.url,
        batch=endpoint.batch,
        created_at=iso_instant(endpoint.made_at),
        state=found.word,
        since=iso_instant(found.since),
        last_status=state.status,
        last_answer_at=iso_instant(state.answered_at),
        last_delivered_at=iso_instant(state.delivered_at),
        lag=WebhookLag(state.records, round(max(0.0, waits), 3)),
        blocking=[BlockingRecord(each.id, each.store, iso_instant(each.since), each.why) for each in state.blocking],
        seen_at=iso_instant(state.seen_at),
        secret=endpoint.secret if with_secret else UNSET,
    )
