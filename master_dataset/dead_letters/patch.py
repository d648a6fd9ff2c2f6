"""Change a dead letter before it is sent again: nothing, some fields by JSON pointer (RFC 6901), or the whole body."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from master_dataset.errors import RequestError
from master_dataset.parsing.json_bytes import check_size, json_object
from master_dataset.parsing.results import InvalidRecordError, Reason

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_BLANK = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Patch:
    """`body`: the whole new record, None to keep the old one. `fields`: JSON pointer to the JSON text to set there."""

    body: bytes | None = None
    fields: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def changes_anything(self) -> bool:
        """Whether the bytes that are sent differ from the stored ones."""
        return self.body is not None or bool(self.fields)

    @property
    def description(self) -> str:
        """What it changes, without the values: empty, `body`, or the pointers separated by spaces."""
        return "body" if self.body is not None else " ".join(self.fields)

    def apply(self, value: bytes | None) -> bytes | None:
        """Return the bytes to send.

        Raises:
            InvalidRecordError: A field cannot be set.
        """
        patched = value if self.body is None else self.body
        for pointer, text in self.fields.items():
            patched = set_pointer(patched or b"", pointer, text)
        return patched


def patch_value(pointer: str, text: bytes) -> bytes:
    """Check a pointer and the JSON text to set there. Returns the text.

    Raises:
        RequestError: The pointer does not name a field, or the text is not JSON.
    """
    if not pointer.startswith("/"):
        raise RequestError(
            f"`{pointer}` is not a pointer to a field.", do="A pointer begins with `/`, as in /transactions/0/price."
        )
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        do = (
            "Write a number as it is, and a text in double quotes, as in --set '/happened_at=\"2026-11-21T09:00:00Z\"'."
        )
        raise RequestError(f"The new value of `{pointer}` is not JSON.", do=do) from error
    return text


def set_pointer(value: bytes, pointer: str, new: bytes) -> bytes:
    """Set one field of a record.

    Everything that is not on the path to the field keeps its bytes. A missing key is added to an existing object; an
    array only accepts indexes that it has.

    Args:
        value: The record, a JSON object.
        pointer: JSON pointer to the field.
        new: The JSON text to set.

    Raises:
        InvalidRecordError: The record is not a JSON object, or the pointer does not exist in it.
    """
    json_object(check_size(value))  # otherwise a duplicate key would silently be merged into one
    return _set_within(value, _parts(pointer), new, pointer)


def _parts(pointer: str) -> Sequence[str]:
    if not pointer.startswith("/"):
        why = "cannot be set as a whole; a pointer begins with `/`"
        raise InvalidRecordError(Reason.MISSING_FIELD, why)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _set_within(value: bytes, parts: Sequence[str], new: bytes, pointer: str) -> bytes:
    if not parts:
        return new
    first, rest = parts[0], parts[1:]
    why = "does not exist in the record, so nothing can be set there"
    no_such_place = InvalidRecordError(Reason.MISSING_FIELD, why, pointer)
    kind = value.lstrip()[:1]
    if kind == b"{":
        members = _OBJECT.decode(value)
        if rest and first not in members:
            raise no_such_place
        members[first] = msgspec.Raw(_set_within(bytes(members.get(first, b"")), rest, new, pointer))
        return msgspec.json.encode(members)
    if kind == b"[" and first.isascii() and first.isdecimal():
        elements = _ARRAY.decode(value)
        if len(first) > len(str(len(elements))) or int(first) >= len(elements):
            raise no_such_place
        elements[int(first)] = msgspec.Raw(_set_within(bytes(elements[int(first)]), rest, new, pointer))
        return msgspec.json.encode(elements)
    raise no_such_place


def pointer_span(text: str, pointer: str) -> tuple[int, int] | None:
    """Return where the value of a field begins and ends in the JSON text; None if it cannot be found."""
    index = 0
    try:
        for part in _parts(pointer) if pointer else ():
            index = _find(text, _skip_blank(text, index), part)
        start = _skip_blank(text, index)
        return (start, _DECODER.raw_decode(text, start)[1]) if pointer else None
    except (ValueError, IndexError, RecursionError, InvalidRecordError):
        return None


def _find(text: str, index: int, part: str) -> int:
    """The index of the value of a member or element. IndexError, ValueError if there is none."""
    is_object = text[index] == "{"
    if not is_object and text[index] != "[":
        raise ValueError(index)
    index, number = index + 1, 0
    while True:
        index = _skip_blank(text, index)
        name = str(number)
        if is_object:
            name, index = _DECODER.raw_decode(text, index)
            index = _skip_blank(text, index) + 1  # the colon
        if name == part:
            return index
        _, index = _DECODER.raw_decode(text, _skip_blank(text, index))
        index = _skip_blank(text, index)
        if text[index] != ",":
            raise ValueError(index)
        index, number = index + 1, number + 1


def _skip_blank(text: str, index: int) -> int:
    while text[index] in _BLANK:
        index += 1
    return index
