"""Middleware without limits: HEAD for every path that has GET, and the span of each request.

A span continues the trace that the header `traceparent` names.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from master_dataset import tracing

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"})
OTHER = "_OTHER"
"""What the semantic conventions call an unknown method."""
_PROPAGATED = (tracing.TRACEPARENT, tracing.TRACESTATE)
_STREAM = b"text/event-stream"
_SERVER_ERROR = 500


class RequestTraces:
    """Middleware that creates the spans. It is added only if the process has a tracer.

    Paths and queries name stores, and addresses belong to people, so a span has the route only. The span of a live
    answer ends when the stream begins.
    """

    def __init__(self, app: ASGIApp) -> None:
        """`app`: the inner application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on within its span."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER
        attributes = {
            "http.request.method": method,
            "url.scheme": scope["scheme"],
            "network.protocol.version": scope["http_version"],
        }
        with tracing.span(method, "server", attributes, carrier=_carrier(scope)) as span:

            async def send_and_note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    _note(span, scope, method, message)
                await send(message)

            try:
                await self._app(scope, receive, send_and_note)
            except Exception:  # its response is made outside of this
                _note_route(span, scope, method)
                span.set("http.response.status_code", _SERVER_ERROR)
                raise


def _note(span: tracing.Span, scope: Scope, method: str, response: Message) -> None:
    _note_route(span, scope, method)
    status = response["status"]
    span.set("http.response.status_code", status)
    if status >= _SERVER_ERROR:
        span.fail(str(status))
    if any(name.lower() == b"content-type" and value.startswith(_STREAM) for name, value in response["headers"]):
        span.end()


def _note_route(span: tracing.Span, scope: Scope, method: str) -> None:
    if route := getattr(scope.get("route"), "path", ""):
        span.rename(f"{method} {route}")
        span.set("http.route", route)


def _carrier(scope: Scope) -> dict[str, str]:
    """Return the header fields of W3C Trace Context. Of a field that is there twice, none counts."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        field = name.decode("latin-1").lower()
        if field in _PROPAGATED:
            found[field] = "" if field in found else value.decode("latin-1")
    return found


class HeadRequests:
    """The same status and headers as GET, and no body (RFC 9110).

    Plain ASGI, the outermost layer: everything inside sees a GET whose client has gone once the head is sent.
    """

    def __init__(self, app: ASGIApp) -> None:
        """`app`: the inner application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a HEAD on as a GET, and drop the body of the response."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        is_sent = False

        async def send_head(message: Message) -> None:
            nonlocal is_sent
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                is_sent = True

        async def receive_until_sent() -> Message:
            return {"type": "http.disconnect"} if is_sent else await receive()

        await self._app({**scope, "method": "GET"}, receive_until_sent, send_head)
