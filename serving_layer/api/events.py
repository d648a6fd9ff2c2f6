"""`/v1/events/{source}`: send events to their topic."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request, Response

from master_dataset.sources import source_named
from serving_layer.api.caller import Ingester
from serving_layer.api.request_bodies import bodies_of
from serving_layer.api.staleness import TOKEN_HEADER, token_of
from serving_layer.errors import UnsupportedBodyError, not_offered
from serving_layer.ingest.events_body import EventsBody
from serving_layer.ingest.ingest import IngestService
from serving_layer.limits import LIMITS
from serving_layer.responses.dead_letters import EventOutcomes
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import returns
from views.control.token import EventToken

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

LINES = "application/x-ndjson"
PLAIN, GZIP = "identity", "gzip"
PAST_DAY_BYTES = 256_000
"""Added to the bytes of a request for each day before the last `RECENT_DAYS`: however few events a day has, the archive
writes a file for it, and a rebuild computes it."""
FEWER = f"Send fewer events in a request, or compress it with `{GZIP}`."


@asynccontextmanager
async def read_events_body(request: Request) -> AsyncIterator[EventsBody]:
    """Read the body of the request, and hold its share of memory until the block ends.

    Raises:
        UnsupportedBodyError: the content type or the encoding is not supported.
        RequestError: whatever `BodyReader.read` raises.
    """
    kind = _header(request, "content-type", "").partition(";")[0].strip()
    if kind not in {JSON, LINES}:
        raise UnsupportedBodyError(f"Events come as `{JSON}` or as `{LINES}`.", do="Say which one in `Content-Type`.")
    encoding = _header(request, "content-encoding", PLAIN)
    if encoding not in {PLAIN, GZIP}:
        raise UnsupportedBodyError(
            f"A body comes as it is or as `{GZIP}`.", do=f"Compress it with `{GZIP}`, or not at all."
        )
    bodies = bodies_of(request)
    async with bodies.read(request, bodies.limits.body_bytes, FEWER) as body:
        yield EventsBody(body, encoding == GZIP, kind == LINES)


def _header(request: Request, name: str, default: str) -> str:
    """The values of all fields of that name, joined as in RFC 9110, 5.3."""
    return ", ".join(request.headers.getlist(name) or [default]).strip().lower()


router = APIRouter(prefix="/v1", tags=["events"])
EVENT = {"type": "object", "description": "As the source says; see the JSON Schema of its topic."}
MANY = {"type": "array", "items": EVENT, "minItems": 1, "maxItems": LIMITS.request_events}
BODY = {
    "required": True,
    "content": {JSON: {"schema": {"oneOf": [EVENT, MANY]}}, LINES: {"schema": {"type": "string"}}},
}
_STATUSES = (HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS, HTTPStatus.UNPROCESSABLE_ENTITY)


async def ingest_of(request: Request) -> IngestService:
    """The ingest service of the app. Raises NotOfferedError if this process has none."""
    ingest: IngestService | None = request.app.state.ingest
    if ingest is None:
        raise not_offered("events", "use `galatea ingest`")
    return ingest


@router.post(
    "/events/{source}",
    operation_id="send_events",
    status_code=HTTPStatus.ACCEPTED,
    openapi_extra={"requestBody": BODY},
    responses=returns(EventOutcomes, status=_STATUSES, description="What became of each event."),
)
async def send_events(
    source: str, request: Request, caller: Ingester, ingest: Annotated[IngestService, Depends(ingest_of)]
) -> Response:
    """Send one event or many; answered when the broker has them on every replica in step. Needs the scope `ingest`.

    The body is an event as a JSON object, a JSON array of them, or one on each line (`application/x-ndjson`), at most
    1,000; plain or as gzip. 202: all are accepted. 207: see `items`, which says of each event its `outcome`: accepted,
    rejected (`reason`, `pointer` to the field, a `sentence`) or unknown (the broker did not confirm it in time: send it
    again, it counts once). 422: all are rejected. What is rejected is not kept. 503: nothing is known to have arrived,
    so send the same again after `Retry-After`. 429: the key sends too many requests per second, or too many bytes of
    events per minute, to which each day more than 31 days in the past adds 256 kB. `token` names what was accepted,
    for `at_least` of a request. The header `Galatea-Token` also names what the request had in `Galatea-At-Least`.
    """
    found, known = source_named(source), token_of(request)
    authenticator: Authenticator = request.app.state.authenticator
    ingest.refuse_low()
    authenticator.sent.refuse(caller)
    async with read_events_body(request) as body:
        try:
            with ingest.admitted():
                results = await ingest.ingest(found, body, caller.tenant)
        finally:  # whoever is refused has been read, and may have been sent
            authenticator.sent.count(caller, body.size)
    authenticator.sent.count(caller, results.past_days * PAST_DAY_BYTES)
    named = (known or EventToken()).joined(results.token) if results.token is not None else None
    headers = {TOKEN_HEADER: named.text()} if named is not None else None
    return Response(encode(results.response()), results.status(), headers, JSON)
