"""The page of the REST interface, from the OpenAPI description that `/openapi.json` serves."""

from collections.abc import Mapping
from typing import Any, cast

import orjson

from deploy.reference.page import Page, code
from serving_layer.api.app import create_app

ASKED = ("name", "in", "default", "meaning")


def page() -> Page:
    """One section per operation."""
    written = Page(
        "REST",
        "JSON over HTTP. A refusal is `application/problem+json` with a code (see [errors](errors.md)); an argument "
        "that is not listed here is refused. The same, for machines: `GET /openapi.json`.",
    )
    nothing = cast("Any", None)  # nothing is answered here
    described = create_app(nothing, nothing, nothing, operator_key="").openapi()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            written.heading(code(f"{method.upper()} {path}"))
            written.paragraph(operation.get("description", ""))
            written.table(ASKED, [_row(each) for each in operation.get("parameters", [])])
    return written


def _row(asked: Mapping[str, Any]) -> tuple[str, str, str, str]:
    schema = asked["schema"]
    usual = schema.get("default")
    default = "required" if asked["required"] else "" if usual in (None, []) else code(orjson.dumps(usual).decode())
    told = [asked.get("description", "").rstrip("."), _choice(schema), _bounds(schema)]
    return code(asked["name"]), asked["in"], default, ". ".join(part for part in told if part)


def _choice(schema: Mapping[str, Any]) -> str:
    return "One of " + ", ".join(code(each) for each in schema["enum"]) if "enum" in schema else ""


def _bounds(schema: Mapping[str, Any]) -> str:
    words = {"minimum": "At least", "maximum": "at most"}
    return " and ".join(f"{word} {schema[name]}" for name, word in words.items() if name in schema)
