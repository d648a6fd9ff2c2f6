"""`/v1/live/{metric}`: an answer that comes again each time that it is another one, as server-sent events."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from master_dataset.errors import GalateaError
from serving_layer.api.caller import Reader
from serving_layer.api.metrics import METRIC, MetricQuestion
from serving_layer.errors import BadQuestion
from serving_layer.query.live import Event, Live

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Gate

router = APIRouter(prefix="/v1", tags=["metrics"])
RETRY_MS = 2000
LAST = "The `id` of the last event that came: the same answer does not come again."


async def events_of(
    request: Request,
    metric: Annotated[str, Path(description=METRIC)],
    asked: Annotated[MetricQuestion, Query()],
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=200, description=LAST)] = None,
) -> AsyncIterator[AsyncIterator[Event]]:
    """The events of a question. What refuses the question refuses it here, before anything is sent."""
    if asked.format != "json":
        raise BadQuestion("Live answers are JSON.", do="Leave `format` out.")
    live: Live = request.app.state.live
    async with live.follow(asked.understood(metric), caller) as follower:
        yield follower.events(last_event_id)


@router.get("/live/{metric}", operation_id="follow_metric", response_class=EventSourceResponse)
async def follow_metric(
    request: Request, caller: Reader, events: Annotated[AsyncIterator[Event], Depends(events_of)]
) -> AsyncIterable[ServerSentEvent]:
    """The answer of `/v1/metrics/{metric}` to the same question, at once and whenever it changes, as an event `answer`.

    Each event is a whole answer, so one that was missed is made up for by the next. `Last-Event-ID` goes on after an
    event. An event `problem` says why there is no answer just now. A key that ends, ends the events.
    """
    gate: Gate = request.app.state.gate
    async for event in events:
        try:
            now = await gate.keys.caller(request.headers.get("Authorization"))
        except GalateaError:  # nothing can be refused any more, only ended
            return
        if now != caller:
            return
        yield ServerSentEvent(raw_data=event.data, event=event.kind, id=event.id or None, retry=RETRY_MS)
