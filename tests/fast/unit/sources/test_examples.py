"""The example of every source is an event, fits its schema, and stands wherever senders look."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from galatea.cli.reference.files import files
from master_dataset.fields import Lines
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from tests.support.corpus.record import MISSING, record, refusal

SOURCES = registered_sources().values()
FILES = files()
ASYNCAPI = json.loads(FILES["asyncapi.json"])
each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.topic)


def schema_of(source: Source[Any]) -> Any:
    return json.loads(FILES[f"schemas/{source.topic}.schema.json"])


def referred(document: Any) -> list[str]:
    """Every `$ref` anywhere in the document."""
    if isinstance(document, list):
        return [found for each in document for found in referred(each)]
    if not isinstance(document, dict):
        return []
    return [found for each in document.values() for found in referred(each)] + [
        document[name] for name in ("$ref",) if name in document
    ]


@each_source
def test_the_example_becomes_an_event_of_its_source(source: Source[Any]) -> None:
    parsed = parse(source, record(source), lambda _: DEFAULT_TERMS)

    assert isinstance(parsed, Event)
    assert parsed.topic == source.topic
    assert parsed.store == "1"


@each_source
def test_the_schema_is_one_and_its_example_fits(source: Source[Any]) -> None:
    schema = schema_of(source)

    Draft202012Validator.check_schema(schema)

    assert list(Draft202012Validator(schema).iter_errors(schema["examples"][0])) == []
    assert schema["examples"] == [source.example]


@each_source
def test_every_field_of_a_schema_says_what_it_is_and_gives_an_example(source: Source[Any]) -> None:
    schema = schema_of(source)
    lines = {name: each["items"] for name, each in schema["properties"].items() if "items" in each}

    for each in (schema, *lines.values()):
        for name, field in each["properties"].items():
            assert {"type", "description"} <= set(field)
            assert name in lines or Draft202012Validator(field).is_valid(field["examples"][0])
        assert each["additionalProperties"] is True


@each_source
def test_every_field_says_what_it_means(source: Source[Any]) -> None:
    fields = [field for each in source.fields.values() if isinstance(each, Lines) for field in each.fields.values()]

    assert [field for field in (*source.fields.values(), *fields) if not field.about.endswith(".")] == []


@each_source
def test_what_the_schema_requires_is_what_the_parser_misses(source: Source[Any]) -> None:
    required = schema_of(source)["required"]

    missed = [name for name in source.fields if refusal(source, **{name: MISSING}) == ("missing_field", f"/{name}")]

    assert set(required) <= set(missed)
    assert set(missed) - set(required) <= {"joined_at", "service_started_at", "entered_at"}  # some kinds need them


def test_the_topics_of_the_asyncapi_document_are_the_sources() -> None:
    topics = set(registered_sources())

    assert ASYNCAPI["asyncapi"] == "3.0.0"
    assert set(ASYNCAPI["channels"]) == set(ASYNCAPI["components"]["messages"]) == topics
    assert {channel["address"] for channel in ASYNCAPI["channels"].values()} == topics
    assert {channel["bindings"]["kafka"]["topic"] for channel in ASYNCAPI["channels"].values()} == topics


def test_the_only_server_of_the_asyncapi_document_is_this_machine() -> None:
    assert [server["host"] for server in ASYNCAPI["servers"].values()] == ["127.0.0.1:9092"]


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    for reference in referred(ASYNCAPI):
        file, _, path = reference.partition("#/")
        found: Any = FILES.get(file) if file else ASYNCAPI
        for name in path.split("/") if path else ():
            found = found[name]
        assert found


@each_source
def test_a_message_says_its_key_its_schema_and_an_example(source: Source[Any]) -> None:
    message = ASYNCAPI["components"]["messages"][source.topic]

    assert source.store in message["bindings"]["kafka"]["key"]["description"]
    assert message["payload"] == {"$ref": f"schemas/{source.topic}.schema.json"}
    assert message["examples"] == [{"payload": source.example}]


@each_source
def test_the_example_stands_on_the_page_of_the_sources(source: Source[Any]) -> None:
    assert f"    {json.dumps(source.example)}\n" in FILES["sources.md"]
