"""Conditional requests: `ETag`, `If-None-Match` and 304 (RFC 9110, RFC 9111)."""

import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NamedTuple

from fastapi import Request, Response

from serving_layer.caching import has, has_any
from serving_layer.index.request import IndexRequest
from serving_layer.query.cells import CellsRequest
from serving_layer.query.resolve import MetricRequest
from serving_layer.query.snapshot import ReadVersion


class AnswerProvenance(NamedTuple):
    """`ask`: by which the moment of a later request is read. `moment`: that of this one."""

    ask: MetricRequest | IndexRequest | CellsRequest
    moment: ReadVersion


CACHE_HEADERS = {"Cache-Control": "no-cache, private", "Vary": "Authorization, Accept"}
"""Who keeps an answer asks before each use whether it still holds, and shows it to nobody else.

`Accept` chooses nothing yet: whatever is kept now stays right when it does.
"""
_NEWEST = re.compile(r"(?i)\bno-cache\b|\bmax-age=0+\b")


def requires_fresh(cache_control: str | None) -> bool:
    """Whether nothing that was read before will do: `no-cache` or `max-age=0` (RFC 9111), as a browser's reload."""
    return cache_control is not None and bool(_NEWEST.search(cache_control))


async def conditional_response(
    request: Request, tag: str, answer: Callable[[], Awaitable[Response]], rests_on: AnswerProvenance | None = None
) -> Response:
    """The answer with its tag, or 304 if the caller has the one of this tag; then nothing is computed.

    `rests_on`: where the same question, asked again, may have the same answer without being read (`ResponseCacheMiddleware`).

    `*` matches any answer, but only if there is one: it is computed, so that a bad question is refused as ever.
    """
    request.state.rests_on = rests_on
    sent = request.headers.getlist("if-none-match")
    headers = {"ETag": tag, **CACHE_HEADERS}
    if has(sent, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    found = await answer()
    if has_any(sent):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    found.headers.update(headers)
    return found
