"""What every type of a field has in common.

Records of fields: those of a source, and lists of them within one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from master_dataset.registry.stores import Currency

Schema = Mapping[str, Any]
"""A JSON Schema of 2020-12."""


class Field(Protocol):
    """One field of a source. `hint` is what msgspec may let through; `read` decides."""

    @property
    def about(self) -> str:
        """What the field says, for whoever sends it."""

    @property
    def optional(self) -> bool:
        """Absent and null both mean None."""

    @property
    def hint(self) -> Any:  # noqa: ANN401 - a type form, for which Python 3.11 has no type
        """The annotation for the decoder: never stricter than `read`, so that it cannot refuse what `read` takes."""

    @property
    def schema(self) -> Schema:
        """The same for others: never stricter than `read`. Its `description` says what no keyword can."""

    def read(self, value: Any, currency: Currency) -> Any:  # noqa: ANN401 - a parser is where Any ends
        """Give the typed value. JSON numbers arrive as int or finite Decimal. Raises Refused."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """`about`: what the field says; it changes nothing of how the field is read."""

    about: str = field(default="", compare=False)


def absent(field: object) -> Any:  # noqa: ANN401 - typed by its field
    """Give what an optional field counts as where it is left out: mostly None."""
    return getattr(field, "otherwise", None)


@dataclass(frozen=True)
class Lines(Described):
    """A list of records, such as the lines of a receipt. Each becomes a tuple of its fields in the order given here."""

    fields: Mapping[str, Field]
    optional: ClassVar[bool] = False

    @property
    def schema(self) -> Schema:
        """A list of objects."""
        return {"type": "array", "items": object_schema(self.fields, {}), "description": "A list, which may be empty."}


def object_schema(fields: Mapping[str, Field | Lines], example: Mapping[str, Any]) -> dict[str, Any]:
    """An object of these fields and of any others. Its fields give the values of `example` as theirs."""
    return {
        "type": "object",
        "properties": {
            name: value_schema(field) | ({"examples": [example[name]]} if name in example else {})
            for name, field in fields.items()
        },
        "required": [name for name, field in fields.items() if not field.optional],
        "additionalProperties": True,  # they are kept
    }


def value_schema(field: Field | Lines) -> dict[str, Any]:
    """What may stand in the place of this field: null, too, if it may be absent."""
    schema = {**field.schema, "description": f"{field.about} {field.schema['description']}".strip()}
    if field.optional:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return schema
