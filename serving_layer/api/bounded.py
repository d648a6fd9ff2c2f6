"""Routes whose request may have a body: JSON, read only so far as such a request may reasonably be long."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message

from serving_layer.api.bodies import bodies_of
from serving_layer.api.described import scopes
from serving_layer.errors import BadQuestion

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Gate

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Bounded(APIRoute):
    """A route that reads so much of a body at most, and of whoever may ask. What Bodies refuses; BadQuestion.

    FastAPI itself would read a body first and ask who sends it then.
    """

    most_bytes: int | None = None
    """None: `question_bytes` of Limits."""

    def get_route_handler(self) -> Handler:
        """The usual handler, behind one that counts and looks whether it is JSON at all."""
        handle, asked = super().get_route_handler(), list(scopes(self.dependant))

        async def counted(request: Request) -> Response:
            gate: Gate = request.app.state.gate
            for scope in asked:
                await gate.known(request.headers.get("authorization"), scope)
            bodies = bodies_of(request)
            most = self.most_bytes or bodies.limits.question_bytes
            async with bodies.whole(request, most, "Ask in several requests.") as body:
                refuse_no_json(body)

            async def again() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            return await handle(Request(request.scope, again))

        return counted


def refuse_no_json(body: bytes) -> None:
    """BadQuestion."""
    try:
        orjson.loads(body or b"null")
    except orjson.JSONDecodeError as error:
        raise BadQuestion(f"The body of the request is no JSON: {error}.", do="Send one object as JSON.") from error
