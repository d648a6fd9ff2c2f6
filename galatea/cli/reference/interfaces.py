"""Reference of the interfaces: REST (page, OpenAPI), Kafka topics (AsyncAPI) and the JSON Schema of each source."""

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, cast

import orjson

from deploy.local.nodes import LOOPBACK
from deploy.settings import Settings
from galatea.cli.reference.catalogue_pages import purpose
from galatea.cli.reference.page import Page, code
from master_dataset.fields import object_schema
from master_dataset.parsing.parse import SCHEMA_HEADER
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.app import create_app

COLUMNS = ("name", "in", "default", "meaning")
"""`in`: path, query or body."""


def rest_page() -> Page:
    """Write the page of the REST interface: one section per operation."""
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
            parameters = [*operation.get("parameters", []), *_body_fields(operation, described.get("components", {}))]
            written.table(COLUMNS, [_row(each) for each in parameters])
    return written


def openapi() -> Mapping[str, Any]:
    """Return the OpenAPI document that `/openapi.json` serves."""
    nothing = cast("Any", None)  # the app is described, not run
    described: Mapping[str, Any] = create_app(
        nothing, nothing, nothing, nothing, alerting=nothing, sessions=nothing
    ).openapi()
    return described


def _body_fields(operation: Mapping[str, Any], components: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields of a JSON body as parameters; none for events, whose fields depend on the source."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        body = components["schemas"][schema["$ref"].rpartition("/")[2]]
        for field, schema in body["properties"].items():
            about = {"description": schema.get("description", ""), "required": field in body.get("required", ())}
            yield {"name": field, "in": "body", "schema": schema, **about}


def _row(parameter: Mapping[str, Any]) -> tuple[str, str, str, str]:
    schema = parameter["schema"]
    schema |= next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), {})
    usual = schema.get("default")
    default = "required" if parameter["required"] else "" if usual in (None, []) else code(orjson.dumps(usual).decode())
    parts = [parameter.get("description", "").rstrip("."), _choice(schema), _bounds(schema)]
    return code(parameter["name"]), parameter["in"], default, ". ".join(part for part in parts if part)


def _choice(schema: Mapping[str, Any]) -> str:
    return "One of " + ", ".join(code(each) for each in schema["enum"]) if "enum" in schema else ""


def _bounds(schema: Mapping[str, Any]) -> str:
    words = {"minimum": "at least", "maximum": "at most", "maxLength": "at most", "maxItems": "at most"}
    units = {"maxLength": " characters", "maxItems": " entries"}
    known = {name: schema[name] for name in words if name in schema and schema[name] != MAX_PUBLICATION}
    bounds = [f"{words[name]} {bound:.15g}{units.get(name, '')}" for name, bound in known.items()]
    return " and ".join(bounds).capitalize()


ASYNCAPI = "3.0.0"
KAFKA = "0.5.0"
"""Version of the Kafka bindings."""
ABOUT = (
    "What Galatea reads from Kafka: one topic per source, one JSON object per record. A record that cannot be an event "
    "becomes a dead letter; nothing is dropped."
)
PARTITIONED = "Its murmur2 hash chooses the partition, as Kafka's own clients do (`murmur2_random` of librdkafka)."
Part = dict[str, Any]


def asyncapi() -> Part:
    """Return the AsyncAPI document, derived from the code alone."""
    sources = registered_sources()
    return {
        "asyncapi": ASYNCAPI,
        "info": {"title": "Galatea", "version": version("galatea-platform"), "description": ABOUT},
        "defaultContentType": "application/json",
        "servers": {"local": _server()},
        "channels": {topic: _channel(source) for topic, source in sources.items()},
        "operations": {f"read_{topic}": _reading(topic) for topic in sources},
        "components": {"messages": {topic: _message(source) for topic, source in sources.items()}},
    }


def _server() -> Part:
    port = Settings.catalogue()["kafka_port"].default
    return {
        "host": f"{LOOPBACK}:{port}",
        "protocol": "kafka",
        "description": "The broker of a local stack with default settings.",
    }


def _channel(source: Source[Any]) -> Part:
    return {
        "address": source.topic,
        "description": purpose(source),
        "servers": [_to("servers", "local")],
        "messages": {source.topic: _to("components", "messages", source.topic)},
        "bindings": {"kafka": {"topic": source.topic, "bindingVersion": KAFKA}},
    }


def _reading(topic: str) -> Part:
    return {
        "action": "receive",
        "channel": _to("channels", topic),
        "messages": [_to("channels", topic, "messages", topic)],
    }


def _message(source: Source[Any]) -> Part:
    key = {"type": "string", "description": f"The store: the text of `{source.store}`. {PARTITIONED}"}
    return {
        "name": source.topic,
        "contentType": "application/json",
        "description": f"Deliveries are of the same event if they are equal in {', '.join(source.identity)}.",
        "headers": _headers(),
        "payload": {"$ref": f"schemas/{source.topic}.schema.json"},
        "bindings": {"kafka": {"key": key, "bindingVersion": KAFKA}},
        "examples": [{"payload": source.example}],
    }


def _headers() -> Part:
    about = "Optional. A record that names anything but a source is a dead letter."
    named = {"type": "string", "enum": [*registered_sources()], "description": about}
    return {"type": "object", "properties": {SCHEMA_HEADER: named}, "additionalProperties": True}


def _to(*path: str) -> Mapping[str, str]:
    return {"$ref": "#/" + "/".join(path)}


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(source: Source[Any], purpose: str) -> dict[str, Any]:
    """Return a JSON Schema that every event matches. The parser may still reject a match, by a rule between fields."""
    fitting = object_schema(source.fields, source.example)
    return {"$schema": DIALECT, "title": source.topic, "description": purpose, **fitting, "examples": [source.example]}
