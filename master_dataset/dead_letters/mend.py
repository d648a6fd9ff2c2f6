"""What is changed in a dead letter before it is sent again: nothing, some of its fields, or all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from master_dataset.dead_letters.pointer import replaced
from master_dataset.errors import RequestError


@dataclass(frozen=True)
class Mend:
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
            found = replaced(found or b"", pointer, text)
        return found


def field_of(pointer: str, text: bytes) -> bytes:
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
