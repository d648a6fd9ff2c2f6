"""The JSON Schema of every source: for whoever sends records and wants to know before Galatea does."""

from typing import Any

from master_dataset.fields import object_schema
from master_dataset.source import Source

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(source: Source[Any], purpose: str) -> dict[str, Any]:
    """Never stricter than the parser: every event fits. What fits may still be refused, by a rule between fields."""
    fitting = object_schema(source.fields, source.example)
    return {"$schema": DIALECT, "title": source.topic, "description": purpose, **fitting, "examples": [source.example]}
