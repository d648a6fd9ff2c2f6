"""A field of a record by its JSON pointer (RFC 6901): where it stands in the bytes, and the bytes with another one.

What is changed in a dead letter before it is sent again: nothing, some of its fields, or all of it.
"""

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


def set_pointer(value: bytes, pointer: str, new: bytes) -> bytes:
    """The record with that field set to this JSON text. Refused if it is no JSON object, or has no such place.

    What is not on the way to the field stays as it was written, digit by digit. A key that is missing is added to an
    object that is there; an array takes only places that it has.
    """
    json_object(check_size(value))  # else a key that stands there twice would silently become one
    return _within(value, _parts(pointer), new, pointer)


def pointer_span(text: str, pointer: str) -> tuple[int, int] | None:
    """First and last-but-one place of the field's value in the text; None where it cannot be found."""
    place = 0
    try:
        for part in _parts(pointer) if pointer else ():
            place = _found(text, _skipped(text, place), part)
        start = _skipped(text, place)
        return (start, _DECODER.raw_decode(text, start)[1]) if pointer else None
    except (ValueError, IndexError, RecursionError, InvalidRecordError):
        return None


def _parts(pointer: str) -> Sequence[str]:
    if not pointer.startswith("/"):
        raise InvalidRecordError(
            Reason.MISSING_FIELD, "cannot be replaced as a whole by a field; a pointer begins with `/`"
        )
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _within(value: bytes, parts: Sequence[str], new: bytes, pointer: str) -> bytes:
    if not parts:
        return new
    first, rest = parts[0], parts[1:]
    nowhere = InvalidRecordError(
        Reason.MISSING_FIELD, "is no place in the record, so nothing can be set there", pointer
    )
    kind = value.lstrip()[:1]
    if kind == b"{":
        members = _OBJECT.decode(value)
        if rest and first not in members:
            raise nowhere
        members[first] = msgspec.Raw(_within(bytes(members.get(first, b"")), rest, new, pointer))
        return msgspec.json.encode(members)
    if kind == b"[" and first.isascii() and first.isdecimal():
        elements = _ARRAY.decode(value)
        if len(first) > len(str(len(elements))) or int(first) >= len(elements):
            raise nowhere
        elements[int(first)] = msgspec.Raw(_within(bytes(elements[int(first)]), rest, new, pointer))
        return msgspec.json.encode(elements)
    raise nowhere


def _found(text: str, place: int, part: str) -> int:
    """Where the value of a member or element begins. IndexError, ValueError if there is none."""
    is_object, wanted = text[place] == "{", part
    if not is_object and text[place] != "[":
        raise ValueError(place)
    place, number = place + 1, 0
    while True:
        place = _skipped(text, place)
        name = str(number)
        if is_object:
            name, place = _DECODER.raw_decode(text, place)
            place = _skipped(text, place) + 1  # the colon
        if name == wanted:
            return place
        _, place = _DECODER.raw_decode(text, _skipped(text, place))
        place = _skipped(text, place)
        if text[place] != ",":
            raise ValueError(place)
        place, number = place + 1, number + 1


def _skipped(text: str, place: int) -> int:
    while text[place] in _BLANK:
        place += 1
    return place


@dataclass(frozen=True)
class Patch:
    """`body`: the whole record anew, None to keep it. `fields`: JSON pointer to the JSON text that is set there."""

    body: bytes | None = None
    fields: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def is_anything(self) -> bool:
        """Whether the bytes are not sent as they are."""
        return self.body is not None or bool(self.fields)

    @property
    def told(self) -> str:
        """What was mended, without the values: empty, `body`, or pointers with a space between."""
        return "body" if self.body is not None else " ".join(self.fields)

    def applied(self, value: bytes | None) -> bytes | None:
        """The bytes that are sent. Refused where a field cannot be set."""
        found = value if self.body is None else self.body
        for pointer, text in self.fields.items():
            found = set_pointer(found or b"", pointer, text)
        return found


def patch_value(pointer: str, text: bytes) -> bytes:
    """The JSON text that is to be set there. RequestError if the pointer is none of a field, or the text no JSON."""
    if not pointer.startswith("/"):
        raise RequestError(
            f"`{pointer}` is no pointer to a field.", do="It begins with `/`, as in /transactions/0/price."
        )
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        do = "A number as it is, a text in double quotes, as in --set '/happened_at=\"2026-11-21T09:00:00Z\"'."
        raise RequestError(f"What `{pointer}` is to be set to is no JSON.", do=do) from error
    return text
