"""`/docs`, `/openapi.json` and `/problems`: the reference of the REST interface, and what its errors mean.

They are made from what the process itself knows, the OpenAPI document and the error tree, and load nothing from
anywhere else. A program gets `/problems` as JSON. They are open to everybody, so what takes long is made once.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Request, Response
from markupsafe import Markup

from master_dataset.errors import UnknownNameError
from serving_layer.http.problem_types import PATH, problem_types
from serving_layer.pages.rendering import ENVIRONMENT, render
from serving_layer.pages.routing import visitor_if_known
from serving_layer.responses.encoding import JSON, ProblemTypeList, encode

router = APIRouter(include_in_schema=False)
Document = Mapping[str, Any]
LANGUAGE = {"Vary": "Accept"}
"""The same path is a page or JSON."""
_BOUNDS = {"minimum": "at least", "maximum": "at most", "maxLength": "at most", "maxItems": "at most"}
_UNITS = {"maxLength": " characters", "maxItems": " entries"}


class Type(NamedTuple):
    """A type as a reader sees it. `names`: the schemas that it refers to, which the page describes."""

    text: str
    names: tuple[str, ...] = ()


class Field(NamedTuple):
    """A parameter, or a field of a schema. `place`: path, query, header or body."""

    name: str
    place: str
    type: Type
    is_required: bool
    meaning: str


class Operation(NamedTuple):
    """One method of one path. `answers`: status, meaning, media types and type of each response that is no problem."""

    id: str
    method: str
    path: str
    paragraphs: list[str]
    scope: str | None
    fields: list[Field]
    body: Type | None
    answers: list[tuple[str, str, str, Type]]
    problems: list[str]


class Schema(NamedTuple):
    """The fields of an object; none if it is something else, which `type` then says."""

    name: str
    paragraphs: list[str]
    type: Type
    fields: list[Field]


class Reference:
    """The OpenAPI document of an app, as JSON and as HTML. Each is made when it is first needed."""

    def __init__(self, app: FastAPI) -> None:
        """Nothing is made yet."""
        self._app = app

    @cached_property
    def json(self) -> bytes:
        """The document."""
        return encode(self._app.openapi())

    @cached_property
    def operations(self) -> Markup:
        """Every operation and schema, in English as the document is."""
        document: Document = self._app.openapi()
        by_tag = _by_tag(document)
        schemas = [_schema(*each) for each in sorted(document["components"]["schemas"].items())]
        template = ENVIRONMENT.get_template("api_operations.html")
        return Markup(template.render(by_tag=by_tag, schemas=schemas))  # noqa: S704 - the template escapes


@router.get("/openapi.json")
async def get_document(request: Request) -> Response:
    """The OpenAPI document."""
    reference: Reference = request.app.state.reference
    return Response(reference.json, media_type=JSON)


@router.get("/docs")
async def get_reference(request: Request) -> Response:
    """The reference of every operation and schema."""
    reference: Reference = request.app.state.reference
    values = {"reference": reference.operations}
    return render(request, "api_reference.html", await visitor_if_known(request), values)


@router.get(PATH)
async def get_problem_types(request: Request) -> Response:
    """Every code of an error."""
    found = list(problem_types().values())
    if not _is_browser(request):
        return Response(encode(ProblemTypeList(found)), media_type=JSON, headers=LANGUAGE)
    return await _page(request, {"problems": found, "only": None})


@router.get(PATH + "/{code}")
async def get_problem_type(request: Request, code: str) -> Response:
    """What one code means. UnknownNameError if no error has it."""
    found = problem_types().get(code)
    if found is None:
        raise UnknownNameError("problem", code, problem_types())
    if not _is_browser(request):
        return Response(encode(found), media_type=JSON, headers=LANGUAGE)
    return await _page(request, {"problems": [found], "only": found})


async def _page(request: Request, values: Mapping[str, object]) -> Response:
    page = render(request, "problem_types.html", await visitor_if_known(request), values)
    page.headers.update(LANGUAGE)
    return page


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _by_tag(document: Document) -> Mapping[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    return found


def _operation(path: str, method: str, described: Document) -> Operation:
    content = described.get("requestBody", {}).get("content", {})
    responses = described["responses"]
    return Operation(
        described["operationId"],
        method.upper(),
        path,
        _paragraphs(described.get("description", "")),
        described.get("x-scope"),
        [_parameter(each) for each in described.get("parameters", ())],
        next((_type(each.get("schema", {})) for each in content.values()), None),
        [_answer(status, each) for status, each in sorted(responses.items()) if status < "400"],
        [status for status in sorted(responses) if status >= "400"],
    )


def _answer(status: str, response: Document) -> tuple[str, str, str, Type]:
    content: Document = response.get("content", {})
    schema = next((each.get("schema", {}) for each in content.values()), None)
    return status, response["description"], ", ".join(content), Type("no body") if schema is None else _type(schema)


def _parameter(parameter: Document) -> Field:
    schema = parameter["schema"]
    parts = [parameter.get("description", ""), *_bounds(schema)]
    return Field(
        parameter["name"],
        parameter["in"],
        _type(schema),
        parameter.get("required", False),
        " ".join(filter(None, parts)),
    )


def _bounds(schema: Document) -> Iterator[str]:
    flat = {**schema} | next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), {})
    for name, words in _BOUNDS.items():
        if name in flat:
            yield f"{words} {flat[name]:g}{_UNITS.get(name, '')}.".capitalize()
    if flat.get("default") not in (None, []):
        yield f"Default: `{flat['default']}`."


def _schema(name: str, schema: Document) -> Schema:
    required = schema.get("required", ())
    fields = [
        Field(field, "body", _type(each), field in required, " ".join([each.get("description", ""), *_bounds(each)]))
        for field, each in schema.get("properties", {}).items()
    ]
    return Schema(name, _paragraphs(schema.get("description", "")), _type(schema), fields)


def _type(schema: Document) -> Type:
    """The type of a schema in words: `list of Point`, `number or null`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Type(name, (name,))
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        types = [_type(each) for each in choices]
        texts = dict.fromkeys(each.text for each in types)
        return Type(" or ".join(texts), tuple(name for each in types for name in each.names))
    if "enum" in schema or "const" in schema:
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        return Type(", ".join("null" if each is None else f"`{each}`" for each in values))
    kind = schema.get("type", "anything")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    for container, key in (("list", "items"), ("map", "additionalProperties")):
        if isinstance(schema.get(key), dict):
            inner = _type(schema[key])
            return Type(f"{container} of {inner.text}", inner.names)
    return Type(f"{kind} ({schema['format']})" if "format" in schema else kind)


def _paragraphs(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", each).strip() for each in re.split(r"\n\s*\n", text) if each.strip()]
