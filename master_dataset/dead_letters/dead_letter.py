"""Stored dead letters, and the query that selects them."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from master_dataset.errors import RequestError, UnknownNameError
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.results import Reason
from master_dataset.sources import source_named

SHOWN_BYTES = 65_536
"""So much of a value is shown; all of it is kept."""
Headers = Sequence[tuple[str, bytes | None]]


class DeadLetterCursor(NamedTuple):
    """Where one stands in the order of receipt; no two stand at the same."""

    received_at: datetime
    place: RecordPosition


@dataclass(frozen=True)
class DeadLetterSummary:
    """What a list says of it. `field`: a JSON pointer, empty for the record as a whole."""

    place: RecordPosition
    received_at: datetime
    reason: str
    field: str
    sentence: str

    @property
    def cursor(self) -> DeadLetterCursor:
        """Where it stands."""
        return DeadLetterCursor(self.received_at, self.place)

    def summary(self) -> dict[str, Any]:
        """Without the bytes."""
        said = {"id": self.place.id, "reason": self.reason, "field": self.field, "sentence": self.sentence}
        return {**said, "received_at": self.received_at}


@dataclass(frozen=True)
class StoredDeadLetter(DeadLetterSummary):
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


@dataclass(frozen=True)
class DeadLetterQuery:
    """`since`: inclusive, `until`: exclusive; both of `received_at`. `replayed`: None asks for both kinds."""

    reason: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    replayed: bool | None = None

    def __post_init__(self) -> None:
        """UnknownNameError, RequestError."""
        if self.reason is not None and self.reason not in list(Reason):
            raise UnknownNameError("reason", self.reason, list(Reason))
        if self.source is not None:
            source_named(self.source)
        if self.since is not None and self.until is not None and self.since >= self.until:
            message = f"`from` is `{self.since:%FT%TZ}`, which is not before `to`: `{self.until:%FT%TZ}`."
            raise RequestError(message, do="Swap them.")


def received_bound(text: str | None) -> datetime | None:
    """An instant from a UTC day or an instant with an offset. RequestError for anything else."""
    if not text:
        return None
    try:
        if "T" not in text and " " not in text:
            return datetime.combine(date.fromisoformat(text), time(0), UTC)
        if (found := datetime.fromisoformat(text)).tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    do = "A UTC day such as 2026-11-21, or an instant such as 2026-11-21T09:00:00Z."
    raise RequestError(f"`{text}` is no time of receipt.", do=do)
