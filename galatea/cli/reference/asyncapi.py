"""The AsyncAPI document: which topics there are, and what may be sent to each."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from deploy.local.nodes import LOOPBACK
from deploy.settings import Settings
from galatea.cli.reference.purposes import purpose
from master_dataset.parsing.parse import SCHEMA_HEADER
from master_dataset.source import Source
from master_dataset.sources import registered_sources

ASYNCAPI = "3.0.0"
KAFKA = "0.5.0"
"""Version of the Kafka bindings."""
ABOUT = (
    "What Galatea reads from Kafka: one topic per source, one JSON object per record. A record that cannot be an event "
    "becomes a dead letter; nothing is dropped."
)
PARTITIONED = "Its murmur2 hash chooses the partition, as Kafka's own clients do (`murmur2_random` of librdkafka)."
Part = dict[str, Any]


def document() -> Part:
    """The whole document; nothing is asked but the code."""
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
    port = Settings.model_fields["kafka_port"].default
    return {
        "host": f"{LOOPBACK}:{port}",
        "protocol": "kafka",
        "description": "The broker of a local stack as it is without settings.",
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
