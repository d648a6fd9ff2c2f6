"""Texts, words of a list, and yes or no."""

from dataclasses import dataclass
from typing import Any, ClassVar

from master_dataset.fields.field import Described, Schema
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.registry.currency import Currency


@dataclass(frozen=True)
class Text(Described):
    """Any text. With `max_bytes` it may serve as a key; an optional empty text counts as absent."""

    optional: bool = False
    max_bytes: int | None = None

    @property
    def hint(self) -> Any:  # noqa: ANN401 - see Field
        """A string, or null where it may be absent."""
        return str | None if self.optional else str

    @property
    def schema(self) -> Schema:
        """A string."""
        most = {} if self.max_bytes is None else {"maxLength": self.max_bytes}
        rule = f"At most {self.max_bytes} bytes of UTF-8." if most else "Any text."
        return {"type": "string", **most, "description": rule, "examples": ["a"]}

    def read(self, value: object, _: Currency) -> str | None:
        """Give the text as it is."""
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string")
        if self.max_bytes is not None and len(value) > self.max_bytes // 4 and len(value.encode()) > self.max_bytes:
            raise Refused(Reason.OUT_OF_RANGE, f"must hold at most {self.max_bytes} bytes")
        return None if self.optional and not value else value


@dataclass(frozen=True)
class Choice(Described):
    """One of a few words."""

    words: tuple[str, ...]
    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = str

    @property
    def schema(self) -> Schema:
        """A string of the list."""
        rule = f"One of {', '.join(f'`{word}`' for word in self.words)}."
        return {"type": "string", "enum": [*self.words], "description": rule, "examples": [self.words[0]]}

    def read(self, value: object, _: Currency) -> str:
        """Give the word. Any other is `unknown_value`."""
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string")
        if value not in self.words:
            raise Refused(Reason.UNKNOWN_VALUE, f"must be one of {', '.join(self.words)}")
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
        """Give the truth. Words and numbers are `wrong_type`."""
        if type(value) is not bool:
            raise Refused(Reason.WRONG_TYPE, "must be true or false")
        return value
