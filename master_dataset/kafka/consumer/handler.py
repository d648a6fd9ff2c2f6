"""What a keyed consumer and its handler exchange: results, limits, and the backlog."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from master_dataset.kafka.record import ConsumerRecord


class Done(NamedTuple):
    """They need not be handed over again."""


class Retry(NamedTuple):
    """It may work later. `after`: not before so many seconds, if whoever takes them said so. `why`: one sentence.

    `fewer`: it may work with fewer of them at once.
    """

    why: str
    after: float | None = None
    fewer: bool = False


class Reject(NamedTuple):
    """The same call would be refused again. `why`: one sentence, which never holds the value."""

    why: str


HandlerResult = Done | Retry | Reject


class Handler(Protocol):
    """Never told of two batches of one key at once."""

    def wants(self, record: ConsumerRecord) -> bool:
        """Whether it is handed over at all. What nobody wants waits for nothing and takes no place."""

    async def take(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        """What became of these records, all of one key and in order."""

    async def put_aside(self, record: ConsumerRecord, refused: Reject) -> Done | Retry:
        """Keep a record that was refused for good; until it is kept it counts as under way."""


class ConsumerLimits(NamedTuple):
    """`under_way`: calls at once. `waiting`: records taken from the broker and not done. `batch`: records of one call.

    `longest_wait`: seconds between two tries, at most. `leave`: seconds that calls under way have at the end.
    """

    under_way: int = 8
    waiting: int = 1000
    batch: int = 500
    longest_wait: float = 60.0
    leave: float = 10.0


DEFAULT_LIMITS = ConsumerLimits()


class BlockedKey(NamedTuple):
    """A key that is tried again and again. `record`: the first one that waits. `since`: seconds since 1970.

    `why`: what was said last, one sentence.
    """

    record: ConsumerRecord
    since: float
    why: str


class Backlog(NamedTuple):
    """`records`: taken from the broker and not done, and not taken yet, among these what nobody wants.

    `oldest_ms`: the broker's stamp of the oldest that was taken and is not done; None if there is none.
    """

    records: int
    oldest_ms: int | None
