"""Which files the reference has: pages for people, schemas and a description of the topics for machines."""

import json
from collections.abc import Mapping
from typing import Any

from galatea.cli.reference import asyncapi
from galatea.cli.reference.pages import pages
from galatea.cli.reference.purposes import purpose
from galatea.cli.reference.rest import openapi
from galatea.cli.reference.schemas import schema
from master_dataset.sources import registered_sources


def files() -> Mapping[str, str]:
    """Path below the folder of the reference to text."""
    written = {f"{name}.md": page.text() for name, page in pages().items()}
    for topic, source in registered_sources().items():
        written[f"schemas/{topic}.schema.json"] = _json(schema(source, purpose(source)))
    return {**written, "asyncapi.json": _json(asyncapi.document()), "openapi.json": _json(openapi())}


def _json(document: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
