"""`/v1/events/{source}`: bring events to their topic."""

from http import HTTPStatus
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Request, Response

from master_dataset.sources import source_named
from serving_layer.api.caller import Ingester
from serving_layer.api.limits import LIMITS
from serving_layer.api.receiving import JSON, LINES, received
from serving_layer.errors import NotOffered
from serving_layer.ingest.ingest import Ingest

router = APIRouter(prefix="/v1", tags=["events"])
EVENT = {"type": "object", "description": "As the source says; see the JSON Schema of its topic."}
MANY = {"type": "array", "items": EVENT, "minItems": 1, "maxItems": LIMITS.request_events}
BODY = {
    "required": True,
    "content": {JSON: {"schema": {"oneOf": [EVENT, MANY]}}, LINES: {"schema": {"type": "string"}}},
}
ITEM = {
    "type": "object",
    "required": ["index", "outcome", "reason", "pointer"],
    "properties": {
        "index": {"type": "integer"},
        "outcome": {"enum": ["accepted", "rejected", "unknown"]},
        **{name: {"type": ["string", "null"]} for name in ("reason", "pointer", "sentence")},
    },
}
OUTCOMES = {
    "type": "object",
    "required": ["accepted", "rejected", "unknown", "items"],
    "properties": {
        **{name: {"type": "integer"} for name in ("accepted", "rejected", "unknown")},
        "items": {"type": "array", "items": ITEM},
    },
}
SAID: dict[str, Any] = {"description": "What became of each event.", "content": {JSON: {"schema": OUTCOMES}}}


async def ingest_of(request: Request) -> Ingest:
    """What the app was made with. NotOffered."""
    ingest: Ingest | None = request.app.state.ingest
    if ingest is None:
        raise NotOffered("This process takes no events.", do="Send them to one that does, or use `galatea ingest`.")
    return ingest


@router.post(
    "/events/{source}",
    operation_id="send_events",
    status_code=HTTPStatus.ACCEPTED,
    openapi_extra={"requestBody": BODY},
    responses=dict.fromkeys((HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS, HTTPStatus.UNPROCESSABLE_ENTITY), SAID),
)
async def send_events(
    source: str, request: Request, caller: Ingester, ingest: Annotated[Ingest, Depends(ingest_of)]
) -> Response:
    """Send one event or many; answered when the broker has them on every replica in step. Needs the scope `ingest`.

    The body is an event as a JSON object, a JSON array of them, or one on each line (`application/x-ndjson`), at most
    1,000; plain or as gzip. 202: all are accepted. 207: see `items`, which says of each event its `outcome`: accepted,
    rejected (`reason`, `pointer` to the field, a `sentence`) or unknown (the broker did not confirm it in time: send it
    again, it counts once). 422: all are rejected. What is rejected is not kept. 503: nothing is known to have arrived,
    so send the same again after `Retry-After`.
    """
    into = source_named(source)
    ingest.refuse_low()
    async with received(request) as posted:
        with ingest.admitted():
            outcomes = await ingest.take(into, posted, caller.tenant)
    return Response(orjson.dumps(outcomes.shown()), outcomes.status(), media_type=JSON)
