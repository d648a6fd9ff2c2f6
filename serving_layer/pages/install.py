"""Puts the pages onto the application.

What is refused outside of every page is a page too, for who asks for pages: a path that leads nowhere, a failure.
"""

import inspect
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from serving_layer.pages import (
    alert_rules,
    alerts,
    assets,
    corrections,
    dead_letters,
    layers,
    login,
    overview,
    publications,
    recompute,
    stack,
    store,
    views,
)
from serving_layer.pages.routing import refusal_page
from serving_layer.pages.sessions import CookieKey, Sessions

if TYPE_CHECKING:
    from starlette.types import ExceptionHandler

ROUTERS = (
    overview,
    store,
    alerts,
    alert_rules,
    layers,
    publications,
    corrections,
    views,
    recompute,
    dead_letters,
    stack,
    login,
    assets,
)


def install(app: FastAPI) -> None:
    """Once, behind the routes of `/v1`. Who may see them, `app.state.gate` says."""
    app.state.sessions = Sessions(time.monotonic)
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_middleware(CookieKey, sessions=app.state.sessions)


FOR_PROGRAMS = ("/v1/", "/static/")
"""Whoever asks there gets the problem, whatever they would rather have."""
LINKS = "The links above lead to all there are."


def install_error_pages(app: FastAPI) -> None:
    """Behind the handlers that make problems of errors: what these say is what the page says."""
    for kind in (HTTPException, Exception):
        app.add_exception_handler(kind, _as_page(cast("ExceptionHandler", app.exception_handlers[kind])))


def _as_page(handle: "ExceptionHandler") -> "ExceptionHandler":
    async def shown(request: Request, error: Exception) -> Response:
        told = handle(request, error)  # type: ignore[arg-type]  # these are of HTTP, not of a web socket
        problem = cast("Response", await told if inspect.isawaitable(told) else told)
        if "text/html" not in request.headers.get("accept", "") or request.url.path.startswith(FOR_PROGRAMS):
            return problem
        said = orjson.loads(bytes(problem.body))
        if problem.status_code == HTTPStatus.NOT_FOUND:
            said |= {"title": f"There is no page `{request.url.path}`.", "detail": LINKS}
        page = await refusal_page(request, problem.status_code, said["title"], said["detail"])
        for name, value in problem.headers.items():
            page.headers.setdefault(name, value)
        return page

    return shown
