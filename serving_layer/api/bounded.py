"""Routes whose request may have a body: JSON, read only so far as such a request may reasonably be long."""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message

from serving_layer.refusals import BadQuestion, BodyTooLarge

MOST_BYTES = 64 * 1024
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Bounded(APIRoute):
    """A route that reads at most `most_bytes`. BodyTooLarge, BadQuestion."""

    most_bytes = MOST_BYTES

    def get_route_handler(self) -> Handler:
        """The usual handler, behind one that counts and looks whether it is JSON at all."""
        handle = super().get_route_handler()

        async def counted(request: Request) -> Response:
            body = await _body(request, self.most_bytes)

            async def again() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            return await handle(Request(request.scope, again))

        return counted


async def _body(request: Request, most_bytes: int) -> bytes:
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > most_bytes:
            message = f"The body of the request is longer than {most_bytes} bytes."
            raise BodyTooLarge(message, do="Ask in several requests.")
    try:
        orjson.loads(read or b"null")
    except orjson.JSONDecodeError as error:
        raise BadQuestion(f"The body of the request is no JSON: {error}.", do="Send one object as JSON.") from error
    return bytes(read)
