"""A route whose refusals are pages too: what happened, what to do next, under the status that REST would give."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from master_dataset.errors import GalateaError
from serving_layer.api.problems import HEADERS_OF
from serving_layer.api.refused import REFUSED
from serving_layer.errors import BadQuestion, KeyMissing, KeyWrong
from serving_layer.pages.rendering import page
from serving_layer.pages.sessions import COOKIE, Sessions
from serving_layer.pages.visitor import Visitor, visitor_of

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
LOGIN = "/login"


class PageRoute(APIRoute):
    """Of every page."""

    def get_route_handler(self) -> Handler:
        """The usual handler, behind one that turns refusals into pages."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except (KeyMissing, KeyWrong) as error:
                return _to_the_door(request, error)
            except RequestValidationError as error:
                wrong = error.errors()[0]
                message = f"`{wrong['loc'][-1]}` cannot be read: {wrong['msg']}."
                return await _refused(request, BadQuestion(message, do="Go back and say it otherwise."))
            except GalateaError as error:
                return await _refused(request, error)

        return shown


def routes() -> APIRouter:
    """For the pages of one file. They are no part of the REST interface."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def _to_the_door(request: Request, error: GalateaError) -> Response:
    REFUSED.labels(error.code).inc()
    if request.method != "GET":
        return RedirectResponse(LOGIN, 303)
    response = page(request, "login.html", None, door(request, error.message), status=error.status)
    if isinstance(error, KeyWrong):
        response.delete_cookie(COOKIE, path="/")
    return response


def door(request: Request, why: str = "") -> dict[str, object]:
    """What the page with the form for a key says. `why` it is shown."""
    sessions: Sessions = request.app.state.sessions
    following = request.url.path if request.url.path != LOGIN else "/"
    return {"token": sessions.token(None), "why": why, "following": following}


async def refusal_page(request: Request, status: int, message: str, do: str) -> Response:
    """What happened, and what to do next."""
    response = page(request, "refusal.html", await _known(request), {"message": message, "do": do}, status=status)
    response.headers.update(HEADERS_OF.get(status, {}))
    return response


async def _refused(request: Request, error: GalateaError) -> Response:
    REFUSED.labels(error.code).inc()
    return await refusal_page(request, error.status, error.message, error.do)


async def _known(request: Request) -> Visitor | None:
    """Who looks, as far as that can be told without failing again."""
    try:
        return await visitor_of(request)
    except GalateaError:
        return None
