"""The types that fields of a source can have. Each reads one decoded JSON value exactly, or rejects it."""

from master_dataset.fields.field import Field, Lines, Schema, absent, object_schema, value_schema
from master_dataset.fields.numbers import BIGINT_MAX, Minor, Scaled, Sign, Whole, millionths, thousandths
from master_dataset.fields.texts import (
    HARDWARE_ADDRESS,
    ID_BYTES,
    LABEL_BYTES,
    Choice,
    Device,
    Flag,
    Id,
    Label,
    Text,
    Word,
)
from master_dataset.fields.times import Instant

__all__ = [
    "BIGINT_MAX",
    "HARDWARE_ADDRESS",
    "ID_BYTES",
    "LABEL_BYTES",
    "Choice",
    "Device",
    "Field",
    "Flag",
    "Id",
    "Instant",
    "Label",
    "Lines",
    "Minor",
    "Scaled",
    "Schema",
    "Sign",
    "Text",
    "Whole",
    "Word",
    "absent",
    "millionths",
    "object_schema",
    "thousandths",
    "value_schema",
]
