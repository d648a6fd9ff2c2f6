"""The OpenAPI document: what FastAPI finds in the routes, and what all of them have in common."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from serving_layer.api.caller import Needs
from serving_layer.api.links import LINKS
from serving_layer.api.problems import MEDIA_TYPE
from serving_layer.keys.key import Scope
from serving_layer.responses.problem import Problem
from serving_layer.responses.schemas import components, schema_of

Document = dict[str, Any]
PROBLEM: Document = {
    "type": "https://galatea.example/docs/errors/unknown_name",
    "title": "There is no metric `net_sale`.",
    "detail": "Did you mean `net_sales`?",
    "code": "unknown_name",
    "status": 404,
}
"""An example."""
EXAMPLES: Document = {
    "metric": "net_sales",
    "view": "sales",
    "source": "pos_transactions",
    "store": ["1"],
    "from": "2026-03-07",
    "to": "2026-03-08",
    "grain": "hour",
    "day": "2026-03-07",
    "number": 1,
    "webhook": "5f0c81d2a9b3",
    "alert_id": "6f0c81d2a9b34e5f8a7b6c5d4e3f2a1b",
    "rule": "queue",
    "reason": "bad_time",
    "topic": "pos_transactions",
    "partition": 0,
    "offset": 7,
}
OF_ALL = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
OF_KEYS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
OF_NAMES = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.GONE)
OF_VERSIONS = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.PRECONDITION_REQUIRED)
OF_BODIES = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def describe(app: FastAPI) -> None:
    """Let the app's own document have the refusals, scopes and examples of every operation."""
    found = app.openapi

    def described() -> Document:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(app, found())
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # as FastAPI's own guide does it


def _completed(app: FastAPI, document: Document) -> Document:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= components()
    schemas["Problem"]["example"] = PROBLEM
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods:
                _complete(document["paths"][route.path_format][method.lower()], route)
    return document


def _complete(operation: Document, route: APIRoute) -> None:
    scope = next(scopes(route.dependant), None)
    operation["summary"] = operation.get("description", "").partition(". ")[0].partition("\n")[0].rstrip(".")
    if scope is not None:
        operation["x-scope"] = scope
        if scope == "read":  # a stack may show one tenant's stores to whoever reaches it
            operation["security"] = [*operation["security"], {}]
    for said in operation.get("parameters", ()):
        if said["name"] in EXAMPLES and said["in"] != "header":
            said["example"] = EXAMPLES[said["name"]]
    for status, said in operation["responses"].items():
        if leads := LINKS.get((operation["operationId"], HTTPStatus(int(status)))):
            said["links"] = {link.name: link.described() for link in leads}
    statuses = [*OF_ALL, *(OF_KEYS if scope else ()), *(OF_NAMES if scope else ())]
    statuses += [HTTPStatus(int(status)) for status in operation["responses"] if status >= "400"]
    statuses += OF_BODIES if "requestBody" in operation else ()
    statuses += OF_VERSIONS if any(said["name"] == "if-match" for said in operation.get("parameters", ())) else ()
    for status in sorted(set(statuses)):
        said = operation["responses"].get(str(status.value), {})
        own = {kind: each for kind, each in said.get("content", {}).items() if "HTTPValidationError" not in str(each)}
        operation["responses"][str(status.value)] = {
            "description": f"Refused: {status.phrase}.",
            "content": {**own, MEDIA_TYPE: {"schema": schema_of(Problem)}},
        }


def scopes(dependant: Dependant) -> Iterator[Scope]:
    """What a route asks for."""
    if isinstance(dependant.call, Needs):
        yield dependant.call.scope
    for inner in dependant.dependencies:
        yield from scopes(inner)
