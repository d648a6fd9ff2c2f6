"""`/v1/webhooks`: where a tenant's alerts are delivered, and the state of each endpoint."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.webhooks.endpoint import RegisteredEndpoint
from serving_layer.api.caller import Configurer, OperationsOf
from serving_layer.api.parameters import DEFAULT, PRINTED, TenantName, tenant_of
from serving_layer.api.request_bodies import BodyLimitRoute
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import returns
from serving_layer.responses.webhooks import SkippedBlocker, Webhook, WebhookPage, WebhookTrial
from serving_layer.webhooks.service import WebhookService, webhook_response

ENTRY: dict[str, Any] = {
    "id": "5f0c81d2a9b3",
    "tenant": "acme",
    "url": "https://acme.example/alerts",
    "batch": 100,
    "created_at": "2026-11-22T09:00:00Z",
    "state": "retrying",
    "since": "2026-11-22T10:12:07.250Z",
    "last_status": 503,
    "last_answer_at": "2026-11-22T10:14:30.100Z",
    "last_delivered_at": "2026-11-22T10:12:01.900Z",
    "lag": {"records": 4, "seconds": 143.7},
    "blocking": [
        {
            "record": "alerts/0/42",
            "store": "1",
            "since": "2026-11-22T10:12:07.250Z",
            "why": "the endpoint answered 503",
        }
    ],
    "seen_at": "2026-11-22T10:14:30.600Z",
}
MADE = {
    **ENTRY,
    "state": "ok",
    "since": None,
    "last_status": None,
    "last_answer_at": None,
    "last_delivered_at": None,
    "lag": {"records": 0, "seconds": 0.0},
    "blocking": [],
    "seen_at": None,
    "secret": "whsec_...",
}
TRIAL = {"outcome": "failed", "status": 503, "sentence": "the endpoint answered 503", "milliseconds": 31}
SKIPPED = {"webhook": "5f0c81d2a9b3", "record": "alerts/0/42", "dead_letter": "webhook.5f0c81d2a9b3/0/42"}


router = APIRouter(prefix="/v1", tags=["webhooks"], route_class=BodyLimitRoute)
PAGE = 1000
MOST_URL_TEXT = 4000
"""Characters that are read; what is longer than an address may be is said by name."""
HookId = Annotated[str, Path(max_length=64)]
Url = Annotated[str, Field(max_length=MOST_URL_TEXT, description="https://host/path; public, and without a password.")]
Batch = Annotated[int, Field(strict=True, ge=1, le=500, description="Alerts of one call, at most.")]


class WebhooksQuestion(BaseModel):
    """`after` is the `next` of the page before."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None
    limit: int = Field(100, ge=1, le=PAGE)
    after: str | None = Field(None, max_length=64, description="Only those behind that id.")


class NewWebhook(BaseModel):
    """Where, and how much at once."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"url": "https://acme.example/alerts"}})

    url: Url
    batch: Batch = 100
    tenant: TenantName = None


class ChangedWebhook(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"batch": 10}})

    url: Url | None = None
    batch: Batch | None = None


class SkippedRecord(BaseModel):
    """One of `blocking`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"record": "alerts/0/42"}})

    record: Annotated[str, Field(max_length=300, pattern=PRINTED, description="topic/partition/offset")]


@router.get(
    "/webhooks",
    operation_id="list_webhooks",
    responses=returns(WebhookPage, example={"webhooks": [ENTRY], "next": None}),
)
async def list_webhooks(
    asked: Annotated[WebhooksQuestion, Query()], operations: OperationsOf, by: Configurer
) -> Response:
    """Every webhook of the tenant, the oldest first, and how it is doing; to operators those of all tenants.

    `state`: ok, refusing, retrying or suspended, `since` when. `last_status`: of the last answer, null if there was
    none. `lag`: records that were not read or delivered yet, other tenants' among those not read, and how long the
    oldest waits.
    `blocking`: what is tried again and again, one of each store. `next` is null on the last page.
    """
    tenant = asked.tenant if by.tenant is None else tenant_of(by, asked.tenant, DEFAULT)
    found = await operations.webhooks.listed(tenant)
    ids = [each.endpoint.id for each in found]
    rest = found[ids.index(asked.after) + 1 :] if asked.after in ids else found if asked.after is None else ()
    page = rest[: asked.limit]
    now = operations.webhooks.now()
    following = page[-1].endpoint.id if len(rest) > asked.limit else None
    return _answer(WebhookPage([webhook_response(each, now) for each in page], following))


@router.post(
    "/webhooks",
    operation_id="create_webhook",
    status_code=HTTPStatus.CREATED,
    responses=returns(Webhook, status=HTTPStatus.CREATED, example=MADE),
)
async def create_webhook(asked: NewWebhook, operations: OperationsOf, by: Configurer) -> Response:
    """Tell this address of the tenant's alerts from now on. Needs the scope `configure`.

    `secret`: of the signatures; it is shown here and never again.
    """
    tenant = tenant_of(by, asked.tenant, DEFAULT)
    made = await operations.webhooks.make(tenant, asked.url, asked.batch)
    where = {"Location": f"{router.prefix}/webhooks/{made.endpoint.id}"}
    return _with_secret(operations.webhooks, made, HTTPStatus.CREATED, where)


@router.get("/webhooks/{webhook}", operation_id="get_webhook", responses=returns(Webhook, example=ENTRY))
async def get_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """One webhook as it is now. Needs the scope `configure`."""
    return _entry(operations.webhooks, await operations.webhooks.found(by.tenant, webhook))


@router.patch("/webhooks/{webhook}", operation_id="change_webhook", responses=returns(Webhook, example=ENTRY))
async def change_webhook(webhook: HookId, asked: ChangedWebhook, operations: OperationsOf, by: Configurer) -> Response:
    """Call another address, or with more or fewer alerts. Needs the scope `configure`; it goes on where it stood."""
    found = await operations.webhooks.found(by.tenant, webhook)
    return _entry(operations.webhooks, await operations.webhooks.change(found, asked.url, asked.batch))


@router.delete("/webhooks/{webhook}", operation_id="remove_webhook", status_code=HTTPStatus.NO_CONTENT)
async def remove_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Tell it nothing more, and forget its secret. Needs the scope `configure`."""
    found = await operations.webhooks.found(by.tenant, webhook)
    await operations.webhooks.keeper.remove(found.endpoint)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/webhooks/{webhook}/rotate", operation_id="rotate_webhook", responses=returns(Webhook, example=MADE))
async def rotate_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Sign with another `secret` within seconds, shown here and never again. Needs the scope `configure`."""
    found = await operations.webhooks.found(by.tenant, webhook)
    return _with_secret(operations.webhooks, await operations.webhooks.rotate(found))


@router.post("/webhooks/{webhook}/test", operation_id="test_webhook", responses=returns(WebhookTrial, example=TRIAL))
async def test_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Call it once, signed, with `{"alerts": [], "test": true}`. Needs the scope `configure`.

    `outcome`: what a call with alerts would have come to: done, failed (it would be tried again) or refused (it would
    become a dead letter), and why in `sentence`. `status`: of the answer, null if there was none.
    """
    found = await operations.webhooks.found(by.tenant, webhook)
    return _answer(await operations.webhooks.trying.call(found.endpoint))


@router.post("/webhooks/{webhook}/resume", operation_id="resume_webhook", responses=returns(Webhook, example=ENTRY))
async def resume_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Call a suspended webhook again; it goes on where it stood, in order. Needs the scope `configure`."""
    found = await operations.webhooks.found(by.tenant, webhook)
    return _entry(operations.webhooks, await operations.webhooks.resume(found))


@router.post(
    "/webhooks/{webhook}/skip",
    operation_id="skip_webhook_record",
    status_code=HTTPStatus.ACCEPTED,
    responses=returns(SkippedBlocker, status=HTTPStatus.ACCEPTED, example=SKIPPED),
)
async def skip_webhook_record(
    webhook: HookId, asked: SkippedRecord, operations: OperationsOf, by: Configurer
) -> Response:
    """Go on without one record that blocks its store, and no other. Needs the scope `configure`.

    It becomes the `dead_letter` of that id within seconds, or when the webhook is resumed.
    """
    found = await operations.webhooks.found(by.tenant, webhook)
    await operations.webhooks.skip(found, asked.record, by.name)
    _, place = asked.record.split("/", 1)
    letter = f"webhook.{found.endpoint.id}/{place}"
    return _answer(SkippedBlocker(found.endpoint.id, asked.record, letter), HTTPStatus.ACCEPTED)


def _entry(webhooks: WebhookService, found: RegisteredEndpoint) -> Response:
    return _answer(webhook_response(found, webhooks.now()))


def _with_secret(
    webhooks: WebhookService,
    found: RegisteredEndpoint,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> Response:
    body = webhook_response(found, webhooks.now(), with_secret=True)
    return _answer(body, status, {"Cache-Control": "no-store", **(headers or {})})


def _answer(body: Struct, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(body), status, headers, JSON)
