"""What the OpenAPI document promises of a response, and whether a response keeps it."""

import re
from functools import cache
from http import HTTPStatus
from typing import Any, cast

import httpx
from jsonschema_rs import Draft202012Validator

from serving_layer.app import create_app
from serving_layer.http.problems import MEDIA_TYPE

JSON = "application/json"
Document = dict[str, Any]
_WITHOUT_ROUTE = frozenset({HTTPStatus.METHOD_NOT_ALLOWED})
"""Answered before there is an operation."""


@cache
def document() -> Document:
    """As `/openapi.json` serves it."""
    nothing = cast("Any", None)  # nothing is answered here
    return create_app(nothing, nothing, nothing, nothing, alerting=nothing, sessions=nothing).openapi()


@cache
def operations() -> tuple[tuple[str, str, Document], ...]:
    """Every operation, with its path and method."""
    return tuple(
        (path, method.upper(), operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    )


def operation_of(method: str, path: str) -> Document | None:
    """The operation that a request asks for; None for pages, and for what is not there."""
    found = [
        (template.count("{"), operation)
        for template, of, operation in operations()
        if of == method and _pattern(template).fullmatch(path)
    ]
    return min(found, key=lambda each: each[0])[1] if found else None  # `/preview` is no `/{id}`


def refuse_unannounced(method: str, response: httpx.Response) -> None:
    """AssertionError for a status, a content type or a body that the document does not announce."""
    operation = operation_of(method, response.url.path)
    if operation is None or response.status_code in _WITHOUT_ROUTE:
        return
    name, said = operation["operationId"], operation["responses"].get(str(response.status_code))
    assert said is not None, f"{name} does not announce {response.status_code}: {response.text[:200]}"
    kind = response.headers.get("content-type", "").partition(";")[0]
    if not response.content:
        return
    kinds = {each.partition(";")[0] for each in said["content"]}
    assert kind in kinds, f"{name} does not announce {kind} with {response.status_code}"
    if kind in {JSON, MEDIA_TYPE}:
        wrong = next(_validator(name, response.status_code, kind).iter_errors(response.json()), None)
        assert wrong is None, f"{name}: {wrong.message} at {wrong.instance_path}" if wrong else ""


@cache
def _validator(name: str, status: int, kind: str) -> Any:
    [operation] = [each for _, _, each in operations() if each["operationId"] == name]
    schema = operation["responses"][str(status)]["content"][kind]["schema"]
    return Draft202012Validator({**schema, "components": _components()})


@cache
def _components() -> Any:
    return _strict(document()["components"])


def _strict(schema: Any) -> Any:
    """The same, but a field that is not described is an error. Clients are not promised that: fields may be added."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _strict(each) for name, each in schema.items()}
    if "properties" in found and "type" in found:
        found.setdefault("additionalProperties", False)
    return found


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(template)))
