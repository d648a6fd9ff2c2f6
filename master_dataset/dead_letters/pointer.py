"""A field of a record by its JSON pointer (RFC 6901): where it stands in the bytes, and the bytes with another one."""

import json
from collections.abc import Sequence

import msgspec

from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.parsing.json_bytes import check_size, json_object

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_BLANK = " \t\r\n"
_DECODER = json.JSONDecoder()


def replaced(value: bytes, pointer: str, new: bytes) -> bytes:
    """The record with that field set to this JSON text. Refused if it is no JSON object, or has no such place.

    What is not on the way to the field stays as it was written, digit by digit. A key that is missing is added to an
    object that is there; an array takes only places that it has.
    """
    json_object(check_size(value))  # else a key that stands there twice would silently become one
    return _within(value, _parts(pointer), new, pointer)


def span(text: str, pointer: str) -> tuple[int, int] | None:
    """First and last-but-one place of the field's value in the text; None where it cannot be found."""
    place = 0
    try:
        for part in _parts(pointer) if pointer else ():
            place = _found(text, _skipped(text, place), part)
        start = _skipped(text, place)
        return (start, _DECODER.raw_decode(text, start)[1]) if pointer else None
    except (ValueError, IndexError, RecursionError, Refused):
        return None


def _parts(pointer: str) -> Sequence[str]:
    if not pointer.startswith("/"):
        raise Refused(Reason.MISSING_FIELD, "cannot be replaced as a whole by a field; a pointer begins with `/`")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _within(value: bytes, parts: Sequence[str], new: bytes, pointer: str) -> bytes:
    if not parts:
        return new
    first, rest = parts[0], parts[1:]
    nowhere = Refused(Reason.MISSING_FIELD, "is no place in the record, so nothing can be set there", pointer)
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
