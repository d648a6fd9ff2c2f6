"""What waits, and behind what."""

from typing import NamedTuple

from master_dataset.kafka.consumer.record import Record


class Blocked(NamedTuple):
    """A key that is tried again and again. `record`: the first one that waits. `since`: seconds since 1970.

    `why`: what was said last, one sentence.
    """

    record: Record
    since: float
    why: str


class Behind(NamedTuple):
    """`records`: taken from the broker and not done, and not taken yet, among these what nobody wants.

    `oldest_ms`: the broker's stamp of the oldest that was taken and is not done; None if there is none.
    """

    records: int
    oldest_ms: int | None
