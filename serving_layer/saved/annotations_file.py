"""Files of annotations: YAML with a list `annotations`, CSV with a header, or JSON Lines."""

import io
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import IO, Any

from master_dataset.errors import BadFileError
from master_dataset.registry.file_rows import FileRows, plain_date
from master_dataset.registry.yaml_text import read_yaml
from serving_layer.saved.annotations import MAX_ANNOTATIONS, NewAnnotation

FIELDS = ("first_day", "last_day", "kind", "text", "stores")
_ROWS = FileRows("annotations", FIELDS, ("first_day", "kind", "text"))
_MAX_BYTES = 8_000_000
_SHOWN = 100
"""Characters of a wrong value that an error repeats."""


def read_annotations(file: Path) -> list[NewAnnotation]:
    """Read a file of annotations: YAML if its name ends with `.yaml` or `.yml`, and else as `read_stream` does.

    Raises:
        BadFileError: the file cannot be read or is wrong; it names the line or entry, and the field.
    """
    with _ROWS.opened(file) as stream:
        if file.suffix.lower() in {".yaml", ".yml"}:
            return _limited(_yaml_rows(stream.read(_MAX_BYTES + 1)))
        return read_stream(stream)


def read_stream(stream: IO[bytes]) -> list[NewAnnotation]:
    """Read annotations as JSON Lines if it begins with `{`, and else as CSV. Raises BadFileError."""
    return _limited((f"line {number}", fields) for number, fields in _ROWS.read(stream))


def read_body(body: bytes) -> list[NewAnnotation]:
    """Read the body of a request as `read_stream` does."""
    return read_stream(io.BytesIO(body))


def _limited(rows: Iterable[tuple[str, dict[str, Any]]]) -> list[NewAnnotation]:
    found: list[NewAnnotation] = []
    for place, fields in rows:
        if len(found) == MAX_ANNOTATIONS:
            raise _ROWS.error(f"There are more than {MAX_ANNOTATIONS:,} annotations.", "too_many_annotations")
        found.append(_annotation(place, fields))
    return found


def _yaml_rows(body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    if len(body) > _MAX_BYTES:
        raise _ROWS.error(f"The file has more than {_MAX_BYTES:,} bytes.", "bad_file")
    try:
        document = read_yaml(body.decode(), most_characters=_MAX_BYTES)
    except UnicodeDecodeError as error:
        raise BadFileError("The annotations are not UTF-8.", do="Save them as UTF-8.") from error
    entries = document.get("annotations") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries or document.keys() != {"annotations"}:
        do = "Write `annotations:`, and an annotation on each `-` below."
        raise BadFileError("The file must hold a list `annotations`.", do=do, code="no_annotations")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise _ROWS.error(f"Entry {number} has no fields.", "bad_file")
        yield f"entry {number}", entry


def _annotation(place: str, fields: dict[str, Any]) -> NewAnnotation:
    for name in fields:
        if name not in FIELDS:
            shown = str(name)[:_SHOWN]
            raise _ROWS.error(
                f"`{shown}` of {place} is not a field; the fields are {', '.join(FIELDS)}.", "unknown_field"
            )
    first = _day(place, fields, "first_day")
    if first is None:
        raise _wrong(place, "first_day", "is missing", "missing_field")
    kind, text = _text(place, fields, "kind"), _text(place, fields, "text")
    return NewAnnotation(first, _day(place, fields, "last_day"), kind, text, _stores(place, fields), place)


def _text(place: str, fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None or value == "":
        raise _wrong(place, name, "is missing", "missing_field")
    if not isinstance(value, str):
        raise _wrong(place, name, "must be a text", "wrong_type")
    return value


def _day(place: str, fields: dict[str, Any], name: str) -> date | None:
    if fields.get(name) in (None, ""):
        return None
    text = _text(place, fields, name).strip()
    try:
        return plain_date(text)
    except ValueError:
        raise _wrong(place, name, f"is not a valid date: `{text[:_SHOWN]}`; one is `2026-05-01`", "bad_time") from None


def _stores(place: str, fields: dict[str, Any]) -> list[str]:
    """A list, or ids that commas separate: an id with a comma in it needs a list."""
    value = fields.get("stores") or []
    ids = value.split(",") if isinstance(value, str) else value
    if not isinstance(ids, list) or not all(isinstance(each, str) and each.strip() for each in ids):
        raise _wrong(place, "stores", "must be ids of stores, separated by commas", "wrong_type")
    return [each.strip() for each in ids]


def _wrong(place: str, name: str, why: str, code: str) -> BadFileError:
    return _ROWS.error(f"`{name}` of {place} {why}.", code)
