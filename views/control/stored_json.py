"""JSON columns of control tables, as this release or another one wrote them."""

from typing import Any, TypeVar

import msgspec

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def read_stored(text: str | None, kind: type[_Struct]) -> _Struct | None:
    """Read a column as far as this release understands it.

    Another release may have written fields that this one does not have, omitted some, or given them another form. Such
    a field gets its default value.

    Args:
        text: JSON of one object; None or empty if nothing was written.
        kind: The form that this release writes.

    Returns:
        None if nothing was written, or a field without a default value cannot be read.
    """
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        return _readable_fields(msgspec.json.decode(text), kind)


def _readable_fields(stored: Any, kind: type[_Struct]) -> _Struct | None:  # noqa: ANN401 - any JSON
    readable: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind) if isinstance(stored, dict) else ():
        if field.encode_name in stored:
            try:
                readable[field.name] = msgspec.convert(stored[field.encode_name], field.type)
            except msgspec.ValidationError:
                continue
    try:
        return kind(**readable)
    except TypeError:  # a field without a default value
        return None
