"""Records of fields: those of a source, and lists of them within one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from master_dataset.fields.field import Described, Field, Schema


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
