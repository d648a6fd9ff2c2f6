"""Webhooks for those who ask over HTTP: whose an endpoint is, how it is doing, and what may be done with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from msgspec import UNSET

from master_dataset.errors import UnknownNameError
from master_dataset.webhooks.endpoint import Endpoint, Network, RegisteredEndpoint, check_url, new_id, new_secret
from serving_layer.errors import NotBlockingError, TooManyWebhooksError
from serving_layer.query.timeline import iso_instant
from serving_layer.responses.webhooks import BlockingRecord, Webhook, WebhookLag, WebhookTrial

RecordPosition = tuple[str, int, int]


class WebhookStore(Protocol):
    """Where endpoints are kept. Every method raises CassandraUnavailableError."""

    async def all(self) -> Sequence[RegisteredEndpoint]:
        """Those that are not removed, the oldest first."""

    async def add(self, endpoint: Endpoint) -> None:
        """Call it from now on."""

    async def change(self, endpoint: Endpoint) -> None:
        """Its address and batch are these from now on."""

    async def remove(self, endpoint: Endpoint) -> None:
        """Call it no more, and forget its secret."""

    async def resume(self, endpoint: Endpoint) -> None:
        """Call it again."""

    async def renew(self, endpoint: Endpoint, secret: str) -> None:
        """Sign with this secret from now on."""

    async def skip(self, endpoint: Endpoint, place: RecordPosition, by: str) -> None:
        """Go on without this record."""


class WebhookTester(Protocol):
    """Whoever makes test calls."""

    async def call(self, endpoint: Endpoint) -> WebhookTrial:
        """Call it once, signed, with no alert. TooBusyError."""


@dataclass(frozen=True)
class WebhookService:
    """`most`: endpoints of a tenant. `allowed`: private networks that may be called.

    A tenant of None is whoever sees those of all tenants.
    """

    keeper: WebhookStore
    trying: WebhookTester
    most: int
    now: Callable[[], datetime]
    allowed: Sequence[Network] = ()

    async def listed(self, tenant: str | None) -> Sequence[RegisteredEndpoint]:
        """The tenant's, the oldest first."""
        return [each for each in await self.keeper.all() if tenant is None or each.endpoint.tenant == tenant]

    async def found(self, tenant: str | None, id_: str) -> RegisteredEndpoint:
        """One of the tenant's. UnknownNameError, for those of another tenant too."""
        known = {each.endpoint.id: each for each in await self.listed(tenant)}
        if id_ not in known:
            raise UnknownNameError("webhook", id_, known, do="`GET /v1/webhooks` lists those that there are.")
        return known[id_]

    async def make(self, tenant: str, url: str, batch: int) -> RegisteredEndpoint:
        """Call this address from now on. BadEndpointError, TooManyWebhooksError."""
        check_url(url, self.allowed)
        if len(await self.listed(tenant)) >= self.most:
            message = f"The tenant `{tenant}` has {self.most} webhooks, and may have no more."
            raise TooManyWebhooksError(message, do="Remove one that is needed no more.")
        made_ms = int(self.now().timestamp() * 1000)
        endpoint = Endpoint(new_id(), tenant, url, new_secret(), batch, made_ms)
        await self.keeper.add(endpoint)
        return RegisteredEndpoint(endpoint)

    async def change(self, found: RegisteredEndpoint, url: str | None, batch: int | None) -> RegisteredEndpoint:
        """Call it there, with so many alerts; None: as before. It goes on where it stood. BadEndpointError."""
        if url is not None:
            check_url(url, self.allowed)
        old = found.endpoint
        changed = replace(old, url=old.url if url is None else url, batch=old.batch if batch is None else batch)
        await self.keeper.change(changed)
        return found._replace(endpoint=changed)

    async def rotate(self, found: RegisteredEndpoint) -> RegisteredEndpoint:
        """Another secret, with which it is signed from now on."""
        renewed = replace(found.endpoint, secret=new_secret())
        await self.keeper.renew(renewed, renewed.secret)
        return found._replace(endpoint=renewed)

    async def resume(self, found: RegisteredEndpoint) -> RegisteredEndpoint:
        """Go on where it stood. One that was not suspended goes on as it does."""
        if found.suspended_at is not None:
            await self.keeper.resume(found.endpoint)
        state = replace(found.state, failing_since=None) if found.suspended_at else found.state
        return found._replace(suspended_at=None, state=state)

    async def skip(self, found: RegisteredEndpoint, record: str, by: str) -> None:
        """Go on without this record, and no other. NotBlockingError unless it blocks its store."""
        blocking = {each.id: each for each in found.state.blocking}
        if record not in blocking:
            message = f"The record `{record}` does not block the webhook `{found.endpoint.id}`."
            known = ", ".join(f"`{id_}`" for id_ in blocking)
            raise NotBlockingError(message, do=f"Name one of these: {known}." if known else "Nothing blocks it now.")
        each = blocking[record]
        await self.keeper.skip(found.endpoint, (each.topic, each.partition, each.offset), by)


def webhook_response(found: RegisteredEndpoint, now: datetime, *, with_secret: bool = False) -> Webhook:
    """As it is shown to whoever may see it; the secret only where it was just made."""
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
