"""The interface of field types, and lists of records within a record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from master_dataset.parsing.results import InvalidRecordError, Reason
from master_dataset.registry.stores import Currency

Schema = Mapping[str, Any]
"""A JSON Schema of 2020-12."""


class Field(Protocol):
    """The type of one field of a source. `hint` is what msgspec lets through; `read` decides."""

    @property
    def about(self) -> str:
        """What the field means, for senders."""

    @property
    def optional(self) -> bool:
        """Whether the field may be absent or null; both mean None."""

    @property
    def hint(self) -> Any:  # noqa: ANN401 - a type form, for which Python 3.11 has no type
        """The annotation for msgspec's decoder: never stricter than `read`."""

    @property
    def schema(self) -> Schema:
        """A JSON Schema for senders: never stricter than `read`. Its `description` says what no keyword can."""

    def read(self, value: Any, currency: Currency) -> Any:  # noqa: ANN401 - a parser is where Any ends
        """Return the typed value. JSON numbers arrive as int or finite Decimal. InvalidRecordError if it is wrong."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """`about`: what the field means; it does not change how the field is read."""

    about: str = field(default="", compare=False)


def absent(field: object) -> Any:  # noqa: ANN401 - typed by its field
    """Return the value of an optional field that is absent; usually None."""
    return getattr(field, "otherwise", None)


@dataclass(frozen=True)
class Lines(Described):
    """A list of records, such as the lines of a receipt. Each becomes a tuple of its fields, in this order.

    `most`: how many it may hold; None for any number.
    """

    fields: Mapping[str, Field]
    optional: bool = False
    most: int | None = None

    @property
    def schema(self) -> Schema:
        """A list of objects."""
        most = {} if self.most is None else {"maxItems": self.most}
        rule = "A list, which may be empty." if self.most is None else f"A list of at most {self.most}."
        return {"type": "array", "items": object_schema(self.fields, {}), **most, "description": rule}

    def check_length(self, length: int) -> None:
        """Raise InvalidRecordError for a list that is too long."""
        if self.most is not None and length > self.most:
            raise InvalidRecordError(Reason.OUT_OF_RANGE, f"must hold at most {self.most}")


def object_schema(fields: Mapping[str, Field | Lines], example: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields and any others, with values of `example` as examples."""
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
    """Return the JSON Schema of a field, which includes null if the field is optional."""
    schema = {**field.schema, "description": f"{field.about} {field.schema['description']}".strip()}
    if field.optional:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return schema
