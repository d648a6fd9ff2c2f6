"""The page of the sources: every kind of event, its fields, and the columns of its table."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from galatea.cli.reference.page import Page, code, codes
from galatea.cli.reference.purposes import purpose
from master_dataset.fields import Field, Lines
from master_dataset.parsing.columns import arrow_fields
from master_dataset.parsing.json_bytes import MAX_BYTES, MAX_DEPTH
from master_dataset.source import Source
from master_dataset.sources import registered_sources


def page() -> Page:
    """One section per registered source."""
    written = Page(
        "Sources",
        f"A record is one JSON object in UTF-8 of at most {MAX_BYTES:,} bytes and {MAX_DEPTH} levels. Unknown fields "
        "are kept with the bytes and otherwise ignored. What cannot be an event becomes a dead letter "
        "(see [errors](errors.md#reasons-of-dead-letters)). The same, for machines: [AsyncAPI](asyncapi.json).",
    )
    for source in registered_sources().values():
        _describe(written, source)
    return written


def _describe(written: Page, source: Source[Any]) -> None:
    written.heading(code(source.topic))
    written.paragraph(purpose(source))
    written.paragraph(
        f"The store, which is also the key of the topic, is {code(source.store)}; the event time is "
        f"{code(source.happened_at)}. Two records are deliveries of the same event if they are equal in "
        f"{codes(source.identity)}."
    )
    written.table(("field", "type", "may be absent", "what it says", "what it takes"), _fields(source.fields, ""))
    written.paragraph(f"For example, and [as a schema](schemas/{source.topic}.schema.json):")
    written.code(json.dumps(source.example, ensure_ascii=False))
    written.heading(f"Columns of `{source.topic}`", 3)
    written.paragraph(
        "Expressions of views may use these, beside `store` and `happened_at`. "
        f"Two deliveries conflict if they differ in {codes(source.content)}."
    )
    columns = [(code(each.name), code(each.type)) for each in arrow_fields(source.payload)]
    written.table(("column", "Arrow type"), columns)
    if source.flags:
        written.paragraph("What is odd about an event stands in `flags`; it counts all the same.")
        written.table(("flag", "meaning"), [(code(flag), meaning) for flag, meaning in source.flags.items()])


def _fields(fields: Mapping[str, Field | Lines], prefix: str) -> Iterator[tuple[str, ...]]:
    for name, field in fields.items():
        absent = "yes" if field.optional else ""
        yield code(prefix + name), type(field).__name__, absent, field.about, field.schema["description"]
        if isinstance(field, Lines):
            yield from _fields(field.fields, f"{prefix}{name}[].")
