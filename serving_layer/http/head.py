"""HEAD for every path that has GET: the same status and headers, and no body (RFC 9110)."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadRequests:
    """Plain ASGI, the outermost layer: everything inside sees a GET whose client has gone once the head is sent."""

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
