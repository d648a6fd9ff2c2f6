"""The OpenAPI document describes every response of every operation. `Asking` compares each response with it."""

from collections.abc import Iterator
from typing import Any

import pytest

from serving_layer.responses.schemas import components
from tests.support.openapi_contract import JSON, document, operations

OPERATIONS = {operation["operationId"]: operation for _, _, operation in operations()}
PROBLEM = "application/problem+json"


def schemas(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of each JSON success response, by status."""
    for status, said in operation["responses"].items():
        if status.startswith("2") and JSON in said.get("content", {}):
            yield status, said["content"][JSON].get("schema", {})


def parts(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every schema within a schema, itself included."""
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from parts(each, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from parts(schema[name], f"{path}.{name}")
    for name in ("anyOf", "oneOf"):
        for number, each in enumerate(schema.get(name, ())):
            yield from parts(each, f"{path}.{name}[{number}]")


def says_nothing(schema: dict[str, Any]) -> bool:
    """An empty schema, an object of which no field is named, or a list of anything."""
    known = {"$ref", "anyOf", "oneOf", "enum", "const", "type"} & set(schema)
    if not known:
        return True
    if schema.get("type") == "object":
        return not schema.get("properties") and not isinstance(schema.get("additionalProperties"), dict)
    return schema.get("type") == "array" and "items" not in schema


REMOVALS = {"remove_floor_plan", "remove_webhook", "remove_annotation", "remove_view", "revoke_share"}


def test_operations_are_described() -> None:
    assert {"get_metric", "send_events", "list_stores"} <= OPERATIONS.keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_json_response_has_a_schema(name: str) -> None:
    found = dict(schemas(OPERATIONS[name]))

    assert all("$ref" in str(schema) for schema in found.values()), found
    bodies = [said.get("content", {}) for status, said in OPERATIONS[name]["responses"].items() if status[0] == "2"]
    assert found or not any(JSON in body for body in bodies)


def test_only_files_streams_and_what_is_removed_have_no_json() -> None:
    without = {name for name, operation in OPERATIONS.items() if not dict(schemas(operation))}

    assert without == {*REMOVALS, "follow_metric", "get_floor_plan_image", "get_metrics_of_process"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_error_is_a_problem(name: str) -> None:
    errors = {status: said for status, said in OPERATIONS[name]["responses"].items() if status >= "400"}

    assert {"400", "422", "500", "503"} <= set(errors)
    for said in errors.values():
        assert said["content"][PROBLEM]["schema"] == {"$ref": "#/components/schemas/Problem"}


@pytest.mark.parametrize("name", components())
def test_no_part_of_a_response_is_an_object_of_which_nothing_is_said(name: str) -> None:
    found = components()[name]

    assert [path for path, schema in parts(found, name) if says_nothing(schema)] == []
    assert found["description"]


def test_every_reference_leads_to_a_component() -> None:
    found = document()
    known = set(found["components"]["schemas"])
    refs = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            refs.update([part["$ref"]] if isinstance(part.get("$ref"), str) else [])
            for each in part.values():
                walk(each)
        for each in part if isinstance(part, list) else ():
            walk(each)

    walk(found)
    assert {ref.rpartition("/")[2] for ref in refs} <= known
    assert set(components()) <= known
