"""`/v1/webhooks`: where a tenant's alerts are delivered, and the state of each endpoint."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.webhooks.endpoint import RegisteredEndpoint
from serving_layer.api.caller import Configurer, OperationsOf
from serving_layer.api.parameters import DEFAULT_TENANT, MAX_PAGE, PRINTABLE, TenantName, tenant_of
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
MAX_URL_TEXT = 4000
"""Characters of a URL that are accepted by the schema; the check of the URL rejects what is too long by name."""
HookId = Annotated[str, Path(max_length=64)]
Url = Annotated[str, Field(max_length=MAX_URL_TEXT, description="https://host/path; public, and without a password.")]
Batch = Annotated[int, Field(strict=True, ge=1, le=500, description="Maximum number of alerts per call.")]


class WebhooksQuery(BaseModel):
    """`after` is the `next` of the previous page."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    after: str | None = Field(None, max_length=64, description="Only webhooks after this id.")


class NewWebhook(BaseModel):
    """The address of a webhook, and how many alerts a call may have."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"url": "https://acme.example/alerts"}})

    url: Url
    batch: Batch = 100
    tenant: TenantName = None


class ChangedWebhook(BaseModel):
    """Omitted fields stay unchanged."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"batch": 10}})

    url: Url | None = None
    batch: Batch | None = None


class SkippedRecord(BaseModel):
    """A record listed in `blocking`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"record": "alerts/0/42"}})

    record: Annotated[str, Field(max_length=300, pattern=PRINTABLE, description="topic/partition/offset")]


@router.get(
    "/webhooks",
    operation_id="list_webhooks",
    responses=returns(WebhookPage, example={"webhooks": [ENTRY], "next": None}),
)
async def list_webhooks(query: Annotated[WebhooksQuery, Query()], operations: OperationsOf, by: Configurer) -> Response:
    """The webhooks of the tenant, oldest first, with their states. For operators: the webhooks of all tenants.

    `state`: ok, refusing, retrying or suspended, and `since` when. `last_status`: status of the last response, null if
    there was none. `lag`: the records that are not read or delivered yet, and how long the oldest has waited; unread
    records can belong to other tenants. `blocking`: the records that are being retried, one per store. `next` is null
    on the last page.
    """
    tenant = query.tenant if by.tenant is None else tenant_of(by, query.tenant, DEFAULT_TENANT)
    found = await operations.webhooks.listed(tenant)
    ids = [each.endpoint.id for each in found]
    rest = found[ids.index(query.after) + 1 :] if query.after in ids else found if query.after is None else ()
    page = rest[: query.limit]
    now = operations.webhooks.now()
    following = page[-1].endpoint.id if len(rest) > query.limit else None
    return _json(WebhookPage([webhook_response(each, now) for each in page], following))


@router.post(
    "/webhooks",
    operation_id="create_webhook",
    status_code=HTTPStatus.CREATED,
    responses=returns(Webhook, status=HTTPStatus.CREATED, example=MADE),
)
async def create_webhook(body: NewWebhook, operations: OperationsOf, by: Configurer) -> Response:
    """Deliver the tenant's alerts to this address from now on. Needs the scope `configure`.

    `secret` signs the calls. It is shown only in this response.
    """
    tenant = tenant_of(by, body.tenant, DEFAULT_TENANT)
    made = await operations.webhooks.make(tenant, body.url, body.batch)
    where = {"Location": f"{router.prefix}/webhooks/{made.endpoint.id}"}
    return _with_secret(operations.webhooks, made, HTTPStatus.CREATED, where)


@router.get("/webhooks/{webhook}", operation_id="get_webhook", responses=returns(Webhook, example=ENTRY))
async def get_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """One webhook with its current state. Needs the scope `configure`."""
    return _entry(operations.webhooks, await operations.webhooks.found(by.tenant, webhook))


@router.patch("/webhooks/{webhook}", operation_id="change_webhook", responses=returns(Webhook, example=ENTRY))
async def change_webhook(webhook: HookId, body: ChangedWebhook, operations: OperationsOf, by: Configurer) -> Response:
    """Change the address or the batch size. Needs the scope `configure`. Delivery continues where it was."""
    found = await operations.webhooks.found(by.tenant, webhook)
    return _entry(operations.webhooks, await operations.webhooks.change(found, body.url, body.batch))


@router.delete("/webhooks/{webhook}", operation_id="remove_webhook", status_code=HTTPStatus.NO_CONTENT)
async def remove_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Stop the delivery and delete the secret. Needs the scope `configure`."""
    found = await operations.webhooks.found(by.tenant, webhook)
    await operations.webhooks.endpoints.remove(found.endpoint)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/webhooks/{webhook}/rotate", operation_id="rotate_webhook", responses=returns(Webhook, example=MADE))
async def rotate_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Replace the `secret`, which is shown only in this response, within seconds. Needs the scope `configure`."""
    found = await operations.webhooks.found(by.tenant, webhook)
    return _with_secret(operations.webhooks, await operations.webhooks.rotate(found))


@router.post("/webhooks/{webhook}/test", operation_id="test_webhook", responses=returns(WebhookTrial, example=TRIAL))
async def test_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Make one signed test call with `{"alerts": [], "test": true}`. Needs the scope `configure`.

    `outcome`: the result that a call with alerts would have had: done, failed (it would be retried) or refused (it
    would become a dead letter); `sentence` says why. `status`: of the response, null if there was none.
    """
    found = await operations.webhooks.found(by.tenant, webhook)
    return _json(await operations.webhooks.trying.call(found.endpoint))


@router.post("/webhooks/{webhook}/resume", operation_id="resume_webhook", responses=returns(Webhook, example=ENTRY))
async def resume_webhook(webhook: HookId, operations: OperationsOf, by: Configurer) -> Response:
    """Resume a suspended webhook where it stopped, in order. Needs the scope `configure`."""
    found = await operations.webhooks.found(by.tenant, webhook)
    return _entry(operations.webhooks, await operations.webhooks.resume(found))


@router.post(
    "/webhooks/{webhook}/skip",
    operation_id="skip_webhook_record",
    status_code=HTTPStatus.ACCEPTED,
    responses=returns(SkippedBlocker, status=HTTPStatus.ACCEPTED, example=SKIPPED),
)
async def skip_webhook_record(
    webhook: HookId, body: SkippedRecord, operations: OperationsOf, by: Configurer
) -> Response:
    """Skip one record that blocks its store. Needs the scope `configure`.

    Within seconds, or when the webhook is resumed, the record becomes the `dead_letter` of that id.
    """
    found = await operations.webhooks.found(by.tenant, webhook)
    await operations.webhooks.skip(found, body.record, by.name)
    _, place = body.record.split("/", 1)
    dead_letter = f"webhook.{found.endpoint.id}/{place}"
    return _json(SkippedBlocker(found.endpoint.id, body.record, dead_letter), HTTPStatus.ACCEPTED)


def _entry(webhooks: WebhookService, found: RegisteredEndpoint) -> Response:
    return _json(webhook_response(found, webhooks.now()))


def _with_secret(
    webhooks: WebhookService,
    found: RegisteredEndpoint,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> Response:
    body = webhook_response(found, webhooks.now(), with_secret=True)
    return _json(body, status, {"Cache-Control": "no-store", **(headers or {})})


def _json(body: Struct, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(body), status, headers, JSON)
