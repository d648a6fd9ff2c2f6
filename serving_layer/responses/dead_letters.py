"""What became of the events of a request, dead letters, and what became of those that were sent again."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from master_dataset.dead_letters.replay import ReplayStatus
from master_dataset.dead_letters.replay_history import ReplayOutcome
from serving_layer.responses.encoding import Instant


class DeadLetterReplay(Struct):
    """A replay of a dead letter, and its outcome as far as it is known by now.

    `mended`: how the record was patched: the JSON pointers of the changed fields, separated by blanks; `body` for a
    complete new record; empty if it was sent unchanged.
    `duplicate_of`: the delivery that counts. `reason`: of another dead letter.
    """

    at: Instant
    by: str
    mended: str
    outcome: ReplayOutcome
    sent_to: str | None
    duplicate_of: str | None
    reason: str | None


class DeadLetterHeader(Struct):
    """A Kafka header; what is not UTF-8 is escaped."""

    key: str
    value: str | None


class DeadLetter(Struct, kw_only=True):
    """A record that could not become an event. `field`: a JSON pointer, empty for the record as a whole.

    In the answer about one letter: its `key` and `headers`; how many `bytes` its value has; and the first 65,536 of
    them as `text` (what is not UTF-8 is escaped) and `base64`.
    """

    id: str
    reason: str
    field: str
    sentence: str
    received_at: Instant
    key: str | UnsetType | None = UNSET
    headers: Sequence[DeadLetterHeader] | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    text: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET
    replays: Sequence[DeadLetterReplay]


class DeadLetterPage(Struct):
    """Dead letters, newest first. `counts` by reason of all that fit, and of those that were `replayed`.

    Both are null where there are too many to count. `next`: the `after` of the next page, null on the last.
    """

    counts: Mapping[str, int] | None
    replayed: Mapping[str, int] | None
    dead_letters: Sequence[DeadLetter]
    next: str | None


class ReplayItem(Struct):
    """What became of one dead letter that was to be sent again; see `replay_dead_letters`."""

    id: str
    outcome: ReplayStatus
    sent_to: str | None
    duplicate_of: str | None
    store: str | None
    reason: str | None
    field: str | None
    sentence: str | None


class Replayed(Struct):
    """What became of each, and `counts` by outcome. `next`: others fit the filter; send it as `after`."""

    dry_run: bool
    counts: Mapping[str, int]
    items: Sequence[ReplayItem]
    next: str | None


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

    `token`: names the accepted ones, for `at_least` of a request; null if there is none, or their place is not known.
    """

    accepted: int
    rejected: int
    unknown: int
    items: Sequence[EventOutcome]
    token: str | None
