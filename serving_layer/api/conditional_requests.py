"""Conditional requests: `ETag`, `If-None-Match` and 304 (RFC 9110, RFC 9111)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import NamedTuple

from fastapi import Request, Response

from serving_layer.caching import if_none_match, matches_any
from serving_layer.index.request import IndexRequest
from serving_layer.query.cells import CellsRequest
from serving_layer.query.resolve import MetricRequest
from serving_layer.query.sensor_health import SensorsRequest
from serving_layer.store.snapshot import ReadVersion


class AnswerProvenance(NamedTuple):
    """What a response depends on. `version`: of the data. `request`: to read the version for a later request."""

    request: MetricRequest | IndexRequest | CellsRequest | SensorsRequest
    version: ReadVersion


CACHE_HEADERS = {"Cache-Control": "no-cache, private", "Vary": "Authorization, Accept"}
"""Caches revalidate a response before each use, and never share it between callers.

`Accept` selects nothing yet; with it, responses cached today stay correct when it does.
"""
_NO_CACHE = re.compile(r"(?i)\bno-cache\b|\bmax-age=0+\b")


def requires_fresh(cache_control: str | None) -> bool:
    """Whether cached data must not be used: `no-cache` or `max-age=0` (RFC 9111), as in the reload of a browser."""
    return cache_control is not None and bool(_NO_CACHE.search(cache_control))


async def conditional_response(
    request: Request,
    tag: str,
    respond: Callable[[], Awaitable[Response]],
    provenance: AnswerProvenance | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """Respond with an `ETag`, or with 304 if the caller already has the response with this tag.

    Args:
        request: may have `If-None-Match`. `*` matches every response, but the response is made first, so that a bad
            request is rejected as usual.
        tag: of the response.
        respond: makes the response; not called if the tag matches.
        provenance: lets `ResponseCacheMiddleware` cache the response; None for responses that it must not cache.
        more: headers of the response, and of 304.
    """
    request.state.provenance = provenance
    sent = request.headers.getlist("if-none-match")
    headers = {"ETag": tag, **CACHE_HEADERS, **more}
    if if_none_match(sent, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    response = await respond()
    if matches_any(sent):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    response.headers.update(headers)
    return response
