"""The page of the REST interface, from the OpenAPI description that `/openapi.json` serves."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from galatea.cli.reference.page import Page, code
from serving_layer.admin.publication_entry import GREATEST
from serving_layer.api.app import create_app

ASKED = ("name", "in", "default", "meaning")
"""`in`: path, query or body."""


def page() -> Page:
    """One section per operation."""
    written = Page(
        "REST",
        "JSON over HTTP. A refusal is `application/problem+json` with a code (see [errors](errors.md)); an argument "
        "that is not listed here is refused. The same, for machines: [OpenAPI](openapi.json).",
    )
    described = openapi()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            written.heading(code(f"{method.upper()} {path}"))
            written.paragraph(operation.get("description", ""))
            asked = [*operation.get("parameters", []), *_said(operation, described.get("components", {}))]
            written.table(ASKED, [_row(each) for each in asked])
    return written


def openapi() -> Mapping[str, Any]:
    """The document that `/openapi.json` serves."""
    nothing = cast("Any", None)  # nothing is answered here
    described: Mapping[str, Any] = create_app(nothing, nothing, nothing, nothing, alerting=nothing).openapi()
    return described


def _said(operation: Mapping[str, Any], components: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The fields of the body, each as if it were a parameter; of events, which every source has its own of, none."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        body = components["schemas"][schema["$ref"].rpartition("/")[2]]
        for field, schema in body["properties"].items():
            told = {"description": schema.get("description", ""), "required": field in body.get("required", ())}
            yield {"name": field, "in": "body", "schema": schema, **told}


def _row(asked: Mapping[str, Any]) -> tuple[str, str, str, str]:
    schema = asked["schema"]
    schema |= next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), {})
    usual = schema.get("default")
    default = "required" if asked["required"] else "" if usual in (None, []) else code(orjson.dumps(usual).decode())
    told = [asked.get("description", "").rstrip("."), _choice(schema), _bounds(schema)]
    return code(asked["name"]), asked["in"], default, ". ".join(part for part in told if part)


def _choice(schema: Mapping[str, Any]) -> str:
    return "One of " + ", ".join(code(each) for each in schema["enum"]) if "enum" in schema else ""


def _bounds(schema: Mapping[str, Any]) -> str:
    words = {"minimum": "at least", "maximum": "at most", "maxLength": "at most", "maxItems": "at most"}
    units = {"maxLength": " characters", "maxItems": " entries"}
    known = {name: schema[name] for name in words if name in schema and schema[name] != GREATEST}
    told = [f"{words[name]} {bound}{units.get(name, '')}" for name, bound in known.items()]
    return " and ".join(told).capitalize()
