"""What became of the events of a request."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct


class EventStatus(StrEnum):
    """ACCEPTED: the broker has it, on every replica that is in step. REJECTED: it was not sent. UNKNOWN: either."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class EventOutcome(Struct):
    """One event, by its place in the request. `unknown`: the broker did not confirm it in time; send it again.

    `reason` is a stable code, `pointer` a JSON pointer to the field, empty for the whole record.
    """

    index: int
    outcome: EventStatus
    reason: str | None
    pointer: str | None
    sentence: str | None


class EventOutcomes(Struct):
    """How many events were accepted, rejected or are unknown, and each of them.

    `token`: names the accepted ones, for `at_least` of a question; null if there is none, or their place is not known.
    """

    accepted: int
    rejected: int
    unknown: int
    items: Sequence[EventOutcome]
    token: str | None
