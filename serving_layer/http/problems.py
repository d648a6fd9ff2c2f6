"""Every error as `application/problem+json` (RFC 9457), and the security headers of every response."""

import secrets
from collections.abc import Mapping
from difflib import get_close_matches
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from msgspec import UNSET
from prometheus_client import Counter
from starlette.exceptions import HTTPException
from starlette.routing import Match

from master_dataset.errors import (
    BadEndpointError,
    BadFloorPlanError,
    BadRuleError,
    DependencyUnavailableError,
    GalateaError,
)
from serving_layer.errors import NotYetError, RateLimitedError
from serving_layer.http.invalid_arguments import invalid_argument
from serving_layer.http.problem_types import HTTP_CODES, PATH, PHRASES
from serving_layer.responses.encoding import Problem, encode

REFUSALS = Counter("galatea_refusals", "Requests that were refused, by the code of the problem.", ("code",))


SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"cache-control", b"no-store"),
)


log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
HEADERS_OF: Mapping[int, Mapping[str, str]] = {
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": str(RETRY_SECONDS)},
    HTTPStatus.REQUEST_TIMEOUT: {"Connection": "close"},  # what is left of the body is not waited for
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: {"Connection": "close"},
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": "1"},
}


def problem(status: int, code: str, title: str, detail: str, field: str | None = None) -> Response:
    """`title` is one sentence, `detail` what to do. `field`: of the body, where one is to blame."""
    return _problem_response(Problem(f"{PATH}/{code}", title, detail, code, status, UNSET if field is None else field))


def _problem_response(body: Problem) -> Response:
    REFUSALS.labels(body.code).inc()
    return Response(encode(body), body.status, HEADERS_OF.get(body.status), MEDIA_TYPE)


def headers_of(error: GalateaError) -> Mapping[str, str]:
    """The headers of a response that reports the error, beside those of its body."""
    headers = HEADERS_OF.get(error.status, {})
    if isinstance(error, RateLimitedError) and error.retry_after is not None:
        return {**headers, "Retry-After": str(error.retry_after)}
    return headers


def install(app: FastAPI) -> None:
    """Answer every error of the app with a problem."""
    app.add_exception_handler(GalateaError, _galatea_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(Exception, _unexpected_error)


async def _galatea_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, GalateaError):
        raise error
    if isinstance(error, BadRuleError | BadEndpointError | BadFloorPlanError):
        return problem(error.status, error.code, error.message, error.do, error.field)
    if isinstance(error, NotYetError):
        place, progress = f"{PATH}/{error.code}", error.progress
        return _problem_response(Problem(place, error.message, error.do, error.code, error.status, progress=progress))
    if not isinstance(error, DependencyUnavailableError):
        response = problem(error.status, error.code, error.message, error.do)
        response.headers.update(headers_of(error))
        return response
    log.warning("serving.unavailable", code=error.code)
    return problem(error.status, error.code, error.message, error.do)


async def _http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status = error.status_code
    code = next((code for code, (known, _) in HTTP_CODES.items() if known == status), "bad_request")
    title = f"{PHRASES.get(status, f'HTTP {status}')}: `{request.method} {request.url.path}`."
    response = problem(status, code, title, "See `/docs` for the paths and their methods.")
    response.headers.update(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(sorted(_allowed(request)))
    return response


def _allowed(request: Request) -> set[str]:
    """Of every route of that path: the router names those of the first one alone."""
    found = [each for each in request.app.routes if each.matches(request.scope)[0] is not Match.NONE]
    exact = [each for each in found if each.path == request.url.path]
    allowed = {method for each in exact or found for method in each.methods or ()}
    return allowed | {"HEAD"} if "GET" in allowed else allowed


async def _validation_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    argument = place[1] if len(place) > 1 else place[0]
    code = {"extra_forbidden": "unknown_argument", "missing": "missing_argument"}.get(first["type"], "bad_question")
    titles = {"unknown_argument": "is not an argument of this request", "missing_argument": "is missing"}
    if code in titles:
        title, do = f"`{argument}` {titles[code]}.", "See `/docs` for the arguments."
    else:
        title, do = invalid_argument(first)
    if code == "unknown_argument" and (near := _nearest(argument, request)):
        do = f"Did you mean `{near}`? See `/docs` for the arguments."
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, code, title, do)


def _nearest(argument: str, request: Request) -> str | None:
    """The argument of the route that is spelled most like this one; None if none is."""
    route = request.scope.get("route")
    known = [field.alias for field in get_flat_params(route.dependant)] if isinstance(route, APIRoute) else []
    return next(iter(get_close_matches(argument, known, n=1)), None)


async def _unexpected_error(_: Request, error: Exception) -> Response:
    number = secrets.token_hex(8)
    log.error("serving.failed", id=number, exc_info=error)
    title, do = "An unexpected error occurred.", f"Give the operator this id: `{number}`."
    response = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", title, do)
    response.raw_headers.extend(SECURITY_HEADERS)  # an error in the outer middleware comes here directly
    return response
