"""OpenLineage's own JSON Schemas, with which every event of ours is validated."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

FOLDER = Path(__file__).with_name("openlineage")
SCHEMAS = {found["$id"]: found for found in (json.loads(file.read_text()) for file in FOLDER.glob("*.json"))}
REGISTRY: Registry[Any] = Registry().with_resources(
    (id_, Resource.from_contents(schema)) for id_, schema in SCHEMAS.items()
)


def check_event(event: dict[str, Any]) -> None:
    """Validate an event, and each of its facets by the schema that it names. An unknown schema is an error."""
    _check(event, event["schemaURL"])
    for facet in facets(event):
        _check(facet, facet["_schemaURL"])


def facets(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Every facet of an event."""
    holders = [event["run"]["facets"], event["job"]["facets"]]
    for dataset in (*event["inputs"], *event["outputs"]):
        holders += [dataset.get(name) or {} for name in ("facets", "inputFacets", "outputFacets")]
    return [facet for holder in holders for facet in holder.values()]


def _check(value: dict[str, Any], url: str) -> None:
    assert url.partition("#")[0] in SCHEMAS, url
    validator = Draft202012Validator({"$ref": url}, registry=REGISTRY, format_checker=FormatChecker())
    errors = [each.message for each in validator.iter_errors(value)]
    assert errors == [], url
