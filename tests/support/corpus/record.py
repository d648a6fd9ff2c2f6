"""Records of any source, made from its example: so that a test says only what is different."""

import json
from collections.abc import Mapping
from typing import Any

from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Event
from master_dataset.registry.stores import DEFAULT_TERMS, Terms
from master_dataset.source import Source

MISSING = object()
"""The value of a field that is left out."""


def record(source: Source[Any], /, **put: object) -> bytes:
    """The example of the source with these fields put in their places, or left out."""
    fields = {name: value for name, value in {**source.example, **put}.items() if value is not MISSING}
    return json.dumps(fields).encode()


def refusal(source: Source[Any], /, **put: object) -> tuple[str, str] | None:
    """Reason and field of the dead letter that the record becomes, if it becomes one."""
    parsed = parse(source, record(source, **put), lambda _: DEFAULT_TERMS)
    return (parsed.reason.value, parsed.field) if isinstance(parsed, DeadLetter) else None


def event(source: Source[Any], terms: Terms = DEFAULT_TERMS, /, **put: object) -> Event[Any]:
    """The event that the record becomes."""
    parsed = parse(source, record(source, **put), lambda _: terms)
    assert isinstance(parsed, Event), parsed
    return parsed


def payload(source: Source[Any], terms: Terms = DEFAULT_TERMS, /, **put: object) -> Any:
    """What the event says."""
    return event(source, terms, **put).payload


def is_repeat(source: Source[Any], first: Mapping[str, object], second: Mapping[str, object]) -> bool | None:
    """Whether two records are deliveries of one event; None: of one identity, but they conflict."""
    one, other = event(source, **first), event(source, **second)
    if one.identity != other.identity:
        return False
    return True if one.payload_hash == other.payload_hash else None
