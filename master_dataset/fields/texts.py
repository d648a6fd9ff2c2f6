"""Text fields: ids and labels, free text, choices, flags and device hashes."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from master_dataset.fields.field import Described, Schema
from master_dataset.fields.numbers import BIGINT_MAX
from master_dataset.parsing.results import InvalidRecordError, Reason
from master_dataset.registry.stores import Currency


@dataclass(frozen=True)
class Text(Described):
    """Any text. With `max_bytes`, it can be part of a key; if it is optional, an empty text counts as absent."""

    optional: bool = False
    max_bytes: int | None = None

    @property
    def hint(self) -> Any:  # noqa: ANN401 - see Field
        """A string, or null if the field is optional."""
        return str | None if self.optional else str

    @property
    def schema(self) -> Schema:
        """A string."""
        most = {} if self.max_bytes is None else {"maxLength": self.max_bytes}
        rule = f"At most {self.max_bytes} bytes of UTF-8." if most else "Any text."
        return {"type": "string", **most, "description": rule, "examples": ["a"]}

    def read(self, value: object, _: Currency) -> str | None:
        """Return the text unchanged."""
        if type(value) is not str:
            raise InvalidRecordError(Reason.WRONG_TYPE, "must be a string")
        if self.max_bytes is not None and len(value) > self.max_bytes // 4 and len(value.encode()) > self.max_bytes:
            raise InvalidRecordError(Reason.OUT_OF_RANGE, f"must hold at most {self.max_bytes} bytes")
        return None if self.optional and not value else value


@dataclass(frozen=True)
class Choice(Described):
    """One of a few words."""

    words: tuple[str, ...]
    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = str

    @property
    def schema(self) -> Schema:
        """One of the allowed strings."""
        rule = f"One of {', '.join(f'`{word}`' for word in self.words)}."
        return {"type": "string", "enum": [*self.words], "description": rule, "examples": [self.words[0]]}

    def read(self, value: object, _: Currency) -> str:
        """Return the word. `unknown_value` for any other."""
        if type(value) is not str:
            raise InvalidRecordError(Reason.WRONG_TYPE, "must be a string")
        if value not in self.words:
            raise InvalidRecordError(Reason.UNKNOWN_VALUE, f"must be one of {', '.join(self.words)}")
        return value


@dataclass(frozen=True)
class Flag(Described):
    """True or false; absent is false."""

    optional: ClassVar[bool] = True
    otherwise: ClassVar[bool] = False
    hint: ClassVar[Any] = Any

    @property
    def schema(self) -> Schema:
        """True or false."""
        return {"type": "boolean", "default": False, "description": "True or false.", "examples": [False]}

    def read(self, value: object, _: Currency) -> bool:
        """Return the value. `wrong_type` for words and numbers."""
        if type(value) is not bool:
            raise InvalidRecordError(Reason.WRONG_TYPE, "must be true or false")
        return value


ID_BYTES = 256
LABEL_BYTES = 64


@dataclass(frozen=True)
class Id(Described):
    """A number or a string, compared as text: 1 is "1" and not "01".

    1.0 is rejected, because it may mean "1" or "1.0".
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
        """Return the text. `bad_identity` if it is empty or over 256 bytes of UTF-8: it is part of keys."""
        if type(value) is int:
            if not -BIGINT_MAX <= value <= BIGINT_MAX:
                raise InvalidRecordError(Reason.BAD_NUMBER, "is a number beyond 64 bits; send such an id as a string")
            return str(value)
        if type(value) is not str:
            raise InvalidRecordError(Reason.WRONG_TYPE, "must be a string or a whole number")
        if not value or (len(value) > ID_BYTES // 4 and len(value.encode()) > ID_BYTES):
            raise InvalidRecordError(Reason.BAD_IDENTITY, f"must hold 1 to {ID_BYTES} bytes")
        return value


@dataclass(frozen=True)
class Label(Described):
    """A short text that names something within a store: a sensor, a door line, a zone, a queue. 1 to 64 bytes."""

    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = str

    @property
    def schema(self) -> Schema:
        """A string.

        The limit is in bytes, so the schema can only limit characters, which have at least one byte each.
        """
        rule = f"1 to {LABEL_BYTES} bytes of UTF-8."
        return {"type": "string", "minLength": 1, "maxLength": LABEL_BYTES, "description": rule, "examples": ["a"]}

    def read(self, value: object, _: Currency) -> str:
        """Return the text. `bad_identity` if it is empty or longer: it is part of keys."""
        if type(value) is not str:
            raise InvalidRecordError(Reason.WRONG_TYPE, "must be a string")
        if not value or (len(value) > LABEL_BYTES // 4 and len(value.encode()) > LABEL_BYTES):
            raise InvalidRecordError(Reason.BAD_IDENTITY, f"must hold 1 to {LABEL_BYTES} bytes")
        return value


WORD = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
is_word = WORD.fullmatch


@dataclass(frozen=True)
class Word(Described):
    """A short name that a sender chooses from few, such as a type of payment: lower-case, and no free text."""

    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = str

    @property
    def schema(self) -> Schema:
        """A string."""
        rule = "1 to 32 lower-case letters, digits and underscores, the first a letter."
        return {"type": "string", "pattern": f"^{WORD.pattern}$", "description": rule, "examples": ["card"]}

    def read(self, value: object, _: Currency) -> str:
        """Return the word. `out_of_range` if it is spelled otherwise."""
        if type(value) is not str:
            raise InvalidRecordError(Reason.WRONG_TYPE, "must be a string")
        if not is_word(value):
            why = "must be 1 to 32 lower-case letters, digits and underscores, the first a letter"
            raise InvalidRecordError(Reason.OUT_OF_RANGE, why)
        return value


HARDWARE_ADDRESS = re.compile(
    r"(?<![H])(?:[H]{6}[:\-. ]?[H]{6}"
    r"|[H]{2}([. ])[H]{2}(?:\1[H]{2}){4}"
    r"|[H]{4}([:\-. ])[H]{4}\2[H]{4}"
    r"|[H]{1,2}([:\-])[H]{1,2}(?:\3[H]{1,2}){4})"  # some leave out leading zeros
    r"(?![H])(?<![H]{8}-[H]{4}-[H]{4}-[H]{4})(?<![H]{4}-[H]{4}-[H]{4}-[H]{12})".replace("H", "0-9A-Fa-f")
)
"""12 hex digits, with or without separators, and not part of a longer hash or of a UUID."""
HASH = re.compile(r"[0-9a-f]{32}", re.ASCII)
is_hash = HASH.fullmatch


@dataclass(frozen=True)
class Device(Label):
    """A keyed hash of a hardware address, made at the edge. The address itself is rejected."""

    @property
    def schema(self) -> Schema:
        """A string of hex digits."""
        example = {"examples": ["9f86d081884c7d659a2feaa0c55ad015"]}
        return {"type": "string", "pattern": f"^{HASH.pattern}$", "description": "32 lower-case hex digits.", **example}

    def read(self, value: object, currency: Currency) -> str:
        """Return the hash. `raw_mac_address` if it looks like an address, otherwise `out_of_range`."""
        device = super().read(value, currency)
        if is_hash(device):
            return device
        if HARDWARE_ADDRESS.fullmatch(device):
            raise InvalidRecordError(Reason.RAW_MAC_ADDRESS, "is a hardware address; hash it at the edge")
        raise InvalidRecordError(Reason.OUT_OF_RANGE, "must be 32 lower-case hex digits")
