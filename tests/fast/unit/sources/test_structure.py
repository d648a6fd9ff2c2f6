"""Every field of every source removed, retyped and joined by others: parser and schema refuse the same ones."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from master_dataset.fields import Field, Id, Lines, value_schema
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from tests.support.corpus.record import MISSING, is_repeat, refusal

KINDS: dict[str, object] = {
    "null": None,
    "true": True,
    "number": 7.5,
    "text": "x",
    "empty": "",
    "list": [],
    "object": {"a": 1},
}
DERIVED = {"joined_at", "service_started_at", "entered_at"}
"""Optional in general, and needed by some kinds of events."""
each_source = pytest.mark.parametrize("source", registered_sources().values(), ids=registered_sources())
FIELDS = [
    pytest.param(source, name, field, id=f"{topic}-{name}")
    for topic, source in registered_sources().items()
    for name, field in source.fields.items()
]


def needs(source: Source[Any], name: str) -> bool:
    return not source.fields[name].optional or (name in DERIVED and name in source.example)


@pytest.mark.parametrize(("source", "name", "field"), FIELDS)
def test_a_field_left_out_is_missed_where_it_is_needed(source: Source[Any], name: str, field: Field | Lines) -> None:
    refused = refusal(source, **{name: MISSING})

    assert refused == (("missing_field", f"/{name}") if needs(source, name) else None)
    assert field.optional or refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("source", "name", "field"), FIELDS)
def test_what_the_schema_of_a_field_refuses_the_parser_refuses_by_that_field(
    source: Source[Any], name: str, field: Field | Lines, kind: str
) -> None:
    fits = Draft202012Validator(value_schema(field)).is_valid(KINDS[kind])

    refused = refusal(source, **{name: KINDS[kind]})

    if not fits:
        assert refused is not None
        assert refused[1] == f"/{name}"
    elif not (kind == "null" and name in DERIVED):
        assert refused is None


@pytest.mark.parametrize("kind", ["true", "list", "object"])
@pytest.mark.parametrize(("source", "name", "field"), FIELDS)
def test_a_field_of_another_type_is_named_as_such(
    source: Source[Any], name: str, field: Field | Lines, kind: str
) -> None:
    refused = refusal(source, **{name: KINDS[kind]})

    if (kind, field.schema["type"]) not in (("true", "boolean"), ("list", "array")):
        assert refused == ("bad_time" if "format" in field.schema else "wrong_type", f"/{name}")


@each_source
@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_of_any_kind_change_no_event(source: Source[Any], kind: str) -> None:
    assert is_repeat(source, {}, {"unknown": KINDS[kind], "Operation_id": KINDS[kind]}) is True


@each_source
@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("x" * 256, None),
        ("x" * 257, "bad_identity"),
        ("", "bad_identity"),
        (2**63 - 1, None),
        (-(2**63) + 1, None),
        (2**63, "bad_number"),
        (1.0, "wrong_type"),
        (True, "wrong_type"),
        ("é" * 129, "bad_identity"),
    ],
)
def test_a_store_is_a_short_text_or_a_number_of_64_bits(
    source: Source[Any], store: object, expected: str | None
) -> None:
    assert isinstance(source.fields[source.store], Id)
    assert refusal(source, **{source.store: store}) == (expected and (expected, f"/{source.store}"))


@each_source
def test_a_store_is_compared_as_text(source: Source[Any]) -> None:
    assert is_repeat(source, {source.store: 1}, {source.store: "1"}) is True
    assert is_repeat(source, {source.store: 1}, {source.store: "01"}) is False


@each_source
def test_a_number_that_is_whole_may_be_written_with_a_point(source: Source[Any]) -> None:
    whole = {
        name: float(value)
        for name, value in source.example.items()
        if isinstance(value, int) and not isinstance(source.fields[name], Id)
    }

    assert is_repeat(source, {}, whole) is True
