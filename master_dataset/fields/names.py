"""Names: of a store, a receipt, a sensor. They are parts of keys."""

from dataclasses import dataclass
from typing import Any, ClassVar

from master_dataset.fields.field import Described, Schema
from master_dataset.fields.numbers import BIGINT_MAX
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.registry.currency import Currency

ID_BYTES = 256
LABEL_BYTES = 64


@dataclass(frozen=True)
class Id(Described):
    """A number or a string, compared as text: 1 is "1" and not "01".

    1.0 is refused: whether it equals 1 or "1.0" is anyone's guess.
    """

    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = int | str

    @property
    def schema(self) -> Schema:
        """A string or a whole number."""
        rule = f'A string of 1 to {ID_BYTES} bytes or a whole number, compared as text: 1 is "1" and not "01".'
        bounds = {"minimum": -BIGINT_MAX, "maximum": BIGINT_MAX, "minLength": 1, "maxLength": ID_BYTES}
        return {"type": ["string", "integer"], **bounds, "description": rule, "examples": [1]}

    def read(self, value: object, _: Currency) -> str:
        """Give the text. Empty or over 256 bytes of UTF-8 is `bad_identity`: it is part of keys."""
        if type(value) is int:
            if not -BIGINT_MAX <= value <= BIGINT_MAX:
                raise Refused(Reason.BAD_NUMBER, "is a number beyond 64 bits; send such an id as a string")
            return str(value)
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string or a whole number")
        if not value or (len(value) > ID_BYTES // 4 and len(value.encode()) > ID_BYTES):
            raise Refused(Reason.BAD_IDENTITY, f"must hold 1 to {ID_BYTES} bytes")
        return value


@dataclass(frozen=True)
class Label(Described):
    """A short text that names something within a store: a sensor, a door line, a zone, a queue. 1 to 64 bytes."""

    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = str

    @property
    def schema(self) -> Schema:
        """A string; its bytes are counted, and every character has at least one."""
        rule = f"1 to {LABEL_BYTES} bytes of UTF-8."
        return {"type": "string", "minLength": 1, "maxLength": LABEL_BYTES, "description": rule, "examples": ["a"]}

    def read(self, value: object, _: Currency) -> str:
        """Give the text. Empty or longer is `bad_identity`: it is part of keys."""
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string")
        if not value or (len(value) > LABEL_BYTES // 4 and len(value.encode()) > LABEL_BYTES):
            raise Refused(Reason.BAD_IDENTITY, f"must hold 1 to {LABEL_BYTES} bytes")
        return value
