"""Adds the pages to the application, and makes a page of every error that a browser meets outside of them."""

import inspect
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from serving_layer.pages import (
    alert_rules,
    alerts,
    annotations,
    assets,
    corrections,
    dead_letters,
    floor_plans,
    keys,
    layers,
    login,
    overview,
    products,
    publications,
    receipts,
    recompute,
    reference,
    saved,
    sensors,
    shared,
    stack,
    store,
    stores,
    views,
)
from serving_layer.pages.queries import is_complete
from serving_layer.pages.recent import RecentAnswers
from serving_layer.pages.routing import error_page
from serving_layer.pages.sessions import SessionAuthorization, Sessions

if TYPE_CHECKING:
    from starlette.types import ExceptionHandler

MODULES = (
    overview,
    stores,
    store,
    receipts,
    products,
    sensors,
    floor_plans,
    alerts,
    alert_rules,
    layers,
    publications,
    corrections,
    views,
    recompute,
    dead_letters,
    keys,
    stack,
    annotations,
    saved,
    shared,
    reference,
    login,
    assets,
)
FOR_PROGRAMS = ("/v1/", "/static/")
"""Errors below these paths stay problem documents, whatever the request accepts."""


def install(app: FastAPI, sessions: Sessions, clock: Callable[[], float] = time.monotonic) -> None:
    """Add the pages, after the routes of `/v1`. `app.state.authenticator` decides who can see them.

    `clock`: monotonic seconds.
    """
    app.state.sessions = sessions
    app.state.recent_answers = RecentAnswers(clock, is_complete)
    for module in MODULES:
        app.router.routes.extend(module.router.routes)
    app.add_middleware(SessionAuthorization, sessions=sessions)


def install_error_pages(app: FastAPI) -> None:
    """Wrap the handlers that make problem documents of errors. A page has the same text."""
    for kind in (HTTPException, Exception):
        app.add_exception_handler(kind, _as_page(cast("ExceptionHandler", app.exception_handlers[kind])))


def _as_page(handle: "ExceptionHandler") -> "ExceptionHandler":
    async def handle_error(request: Request, error: Exception) -> Response:
        handled = handle(request, error)  # type: ignore[arg-type]  # these are of HTTP, not of a web socket
        problem = cast("Response", await handled if inspect.isawaitable(handled) else handled)
        if "text/html" not in request.headers.get("accept", "") or request.url.path.startswith(FOR_PROGRAMS):
            return problem
        fields = orjson.loads(bytes(problem.body))
        title, detail = fields["title"], fields["detail"]
        if problem.status_code == HTTPStatus.NOT_FOUND:
            title, detail = f"There is no page `{request.url.path}`.", "The links above lead to all pages."
        page = await error_page(request, problem.status_code, title, detail)
        for name, value in problem.headers.items():
            page.headers.setdefault(name, value)
        return page

    return handle_error
