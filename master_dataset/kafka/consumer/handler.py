"""What a keyed consumer and its handler exchange: results, limits, and what is still to be done."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from master_dataset.kafka.record import ConsumerRecord


class Done(NamedTuple):
    """The records are handled; their offsets may be committed."""


class Retry(NamedTuple):
    """The call failed and may succeed later: the same batch is passed again.

    `why`: one sentence. `after`: minimum seconds to wait, if the receiver requested it. `fewer`: a smaller batch may
    succeed.
    """

    why: str
    after: float | None = None
    fewer: bool = False


class Reject(NamedTuple):
    """The call would always fail in the same way. `why`: one sentence that never contains the value."""

    why: str


HandlerResult = Done | Retry | Reject


class Handler(Protocol):
    """Handles the records of a topic. Never called twice at once for the same key."""

    def accepts(self, record: ConsumerRecord) -> bool:
        """Return whether the record is for this handler. If not, it counts as done immediately."""

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        """Handle a batch of one key, in order of offset."""

    async def store_rejected(self, record: ConsumerRecord, rejected: Reject) -> Done | Retry:
        """Store a record that was rejected by itself. Its offset is not committed before it is stored."""


class ConsumerLimits(NamedTuple):
    """Bounds of one consumer.

    `under_way`: concurrent calls, over all keys. `waiting`: records in memory. `batch`: records per call.
    `longest_wait`: maximum seconds between two attempts. `leave`: seconds that running calls get when the consumer
    stops or loses a partition.
    """

    under_way: int = 8
    waiting: int = 1000
    batch: int = 500
    longest_wait: float = 60.0
    leave: float = 10.0


DEFAULT_LIMITS = ConsumerLimits()


class BlockedKey(NamedTuple):
    """A key whose first record is retried. `since`: seconds since 1970. `why`: the reason of the last failure."""

    record: ConsumerRecord
    since: float
    why: str


class Backlog(NamedTuple):
    """`records`: read and not done, or not read yet (an upper bound: it includes records that are not accepted).

    `oldest_ms`: broker timestamp of the oldest record in memory, milliseconds since 1970; None if there is none.
    """

    records: int
    oldest_ms: int | None
