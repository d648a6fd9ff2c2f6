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
"""How much of a value is shown; all of it is stored."""
Headers = Sequence[tuple[str, bytes | None]]


class DeadLetterCursor(NamedTuple):
    """The place of a dead letter in the order of receipt; unique."""

    received_at: datetime
    position: RecordPosition


@dataclass(frozen=True)
class DeadLetterSummary:
    """A dead letter without its bytes. `field`: a JSON pointer, empty for the record as a whole."""

    position: RecordPosition
    received_at: datetime
    reason: str
    field: str
    sentence: str

    @property
    def cursor(self) -> DeadLetterCursor:
        """Its place in the order of receipt."""
        return DeadLetterCursor(self.received_at, self.position)

    def summary(self) -> dict[str, Any]:
        """The fields that a list of dead letters shows."""
        said = {"id": self.position.id, "reason": self.reason, "field": self.field, "sentence": self.sentence}
        return {**said, "received_at": self.received_at}


@dataclass(frozen=True)
class StoredDeadLetter(DeadLetterSummary):
    """A dead letter with its bytes. `size`: bytes of the whole value; `value` is cut if it is larger than a record."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    size: int

    def whole(self) -> dict[str, Any]:
        """The form of one dead letter: the first SHOWN_BYTES as text, as far as it is UTF-8, and as base64."""
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
    """Which dead letters to select.

    `since` (inclusive) and `until` (exclusive) apply to `received_at`. None: no condition.
    """

    reason: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    replayed: bool | None = None

    def __post_init__(self) -> None:
        """Raises UnknownNameError for an unknown reason or source, RequestError for an empty time range."""
        if self.reason is not None and self.reason not in list(Reason):
            raise UnknownNameError("reason", self.reason, list(Reason))
        if self.source is not None:
            source_named(self.source)
        if self.since is not None and self.until is not None and self.since >= self.until:
            message = f"`from` is `{self.since:%FT%TZ}`, which is not before `to`: `{self.until:%FT%TZ}`."
            raise RequestError(message, do="Swap them.")


def received_bound(text: str | None) -> datetime | None:
    """Parse a bound of the time of receipt: a UTC day, or an instant with an offset. None for an empty text.

    Raises:
        RequestError: The text is neither.
    """
    if not text:
        return None
    try:
        if "T" not in text and " " not in text:
            return datetime.combine(date.fromisoformat(text), time(0), UTC)
        if (found := datetime.fromisoformat(text)).tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    do = "Use a UTC day such as 2026-11-21, or an instant such as 2026-11-21T09:00:00Z."
    raise RequestError(f"`{text}` is not a valid time.", do=do)
