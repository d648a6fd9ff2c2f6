"""One dead letter: why it is no event, and its bytes."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from master_dataset.dead_letters.place import Place

SHOWN_BYTES = 65_536
"""So much of a value is shown; all of it is kept."""
Headers = Sequence[tuple[str, bytes | None]]


class Cursor(NamedTuple):
    """Where one stands in the order of receipt; no two stand at the same."""

    received_at: datetime
    place: Place


@dataclass(frozen=True)
class Heading:
    """What a list says of it. `field`: a JSON pointer, empty for the record as a whole."""

    place: Place
    received_at: datetime
    reason: str
    field: str
    sentence: str

    @property
    def cursor(self) -> Cursor:
        """Where it stands."""
        return Cursor(self.received_at, self.place)

    def summary(self) -> dict[str, Any]:
        """Without the bytes."""
        said = {"id": self.place.id, "reason": self.reason, "field": self.field, "sentence": self.sentence}
        return {**said, "received_at": self.received_at}


@dataclass(frozen=True)
class Letter(Heading):
    """With its bytes. `size`: of the whole value, of which one larger than a record may be is not read to its end."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    size: int

    def whole(self) -> dict[str, Any]:
        """The text as far as it is UTF-8, and base64 in any case; of long values the first SHOWN_BYTES."""
        start = (self.value or b"")[:SHOWN_BYTES]
        return {
            **self.summary(),
            "key": None if self.key is None else self.key.decode(errors="backslashreplace"),
            "headers": [{"key": name, "value": _text(value)} for name, value in self.headers],
            "bytes": self.size,
            "text": start.decode(errors="backslashreplace"),
            "base64": base64.b64encode(start).decode(),
        }


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")
