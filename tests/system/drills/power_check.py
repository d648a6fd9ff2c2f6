"""What a log must have after power cuts: pure functions of what was acknowledged and what was read.

A record is `b"NAME NUMBER FILLING"`: who sent it, and its number, which rises with each new record of that producer.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

_HEAD = struct.Struct(">8xi11xi16xqhi")
_BEFORE_LENGTH = 12


class Place(NamedTuple):
    """A record in the log, or where a broker said that it is."""

    partition: int
    offset: int
    value: bytes


class Outcome(StrEnum):
    """What is known of a transaction. ABORTED: nobody has asked for its commit, and its producer sends nothing more."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Transaction(NamedTuple):
    """Number of records of a transaction, and its outcome."""

    size: int
    outcome: Outcome


@dataclass
class Broken:
    """How often each invariant did not hold, and what is only counted.

    `lost`: not at the acknowledged partition and offset. `twice`: appended again for one epoch of a producer, or
    visible again in a transaction. `incomplete`: acknowledged transactions that are not
    completely visible, or others of which a part is. `aborted_visible`: records of transactions that nobody committed.
    `low_watermarks`: a partition of which the end was below an acknowledged offset. `positions`: the committed position
    is not that of the newest visible transaction. `hanging`: partitions with a transaction that is never decided.

    No harm, because events count once: `sent_again`: there twice, as the drill has sent it twice; `repeated`: there
    twice, as the client went on with a new epoch, for which the broker knows of no earlier record.
    """

    lost: int = 0
    twice: int = 0
    out_of_order: int = 0
    incomplete: int = 0
    aborted_visible: int = 0
    low_watermarks: int = 0
    positions: int = 0
    hanging: int = 0
    sent_again: int = 0
    repeated: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether every invariant holds."""
        return not any(number for name, number in vars(self).items() if name not in ("sent_again", "repeated"))

    def __add__(self, other: "Broken") -> "Broken":
        return Broken(**{name: number + getattr(other, name) for name, number in vars(self).items()})

    def __str__(self) -> str:
        return ", ".join(f"{name} {number}" for name, number in vars(self).items() if number) or "nothing is broken"


class Acknowledged(NamedTuple):
    """`places` of acknowledged records.

    `again`: values that were sent more than once by who asks, because the first outcome was unknown.
    """

    places: Collection[Place]
    again: Collection[bytes] = frozenset()


def check_records(acknowledged: Acknowledged, log: Iterable[Place]) -> Broken:
    """Compare what was acknowledged with the log, which is in the order of offsets within each partition."""
    found: dict[tuple[int, int], bytes] = {}
    values: set[bytes] = set()
    newest: dict[tuple[bytes, int], int] = {}
    broken = Broken()
    for partition, offset, value in log:
        found[partition, offset] = value
        name, number_, _ = value.split(b" ", 2)
        number, key = int(number_), (name, partition)
        if value in values:
            if value in acknowledged.again:
                broken.sent_again += 1
            else:
                broken.repeated += 1
        elif value not in acknowledged.again:
            broken.out_of_order += number < newest.get(key, -1)
            newest[key] = max(number, newest.get(key, -1))
        values.add(value)
    broken.lost = sum(found.get((each.partition, each.offset)) != each.value for each in acknowledged.places)
    return broken


class Batch(NamedTuple):
    """Records that were appended at once: their producer, its epoch, the sequence number of the first, how many."""

    producer: int
    epoch: int
    sequence: int
    records: int


def batches_of(segment: bytes) -> Iterator[Batch]:
    """Read the heads of all batches in a file of a partition's log, as Kafka's message format 2 has them."""
    at = 0
    while at + _HEAD.size <= len(segment):
        length, last, producer, epoch, sequence = _HEAD.unpack_from(segment, at)
        if length <= 0:
            return
        yield Batch(producer, epoch, sequence, last + 1)
        at += _BEFORE_LENGTH + length


def check_sequences(batches: Iterable[Batch]) -> int:
    """Return how many batches of one partition repeat a sequence number of the same epoch of their producer."""
    newest: dict[tuple[int, int], int] = {}
    twice = 0
    for producer, epoch, sequence, records in batches:
        twice += sequence <= newest.get((producer, epoch), -1)
        newest[producer, epoch] = sequence + records - 1
    return twice


def check_transactions(known: Mapping[int, Transaction], visible: Iterable[tuple[int, int]], position: int) -> Broken:
    """Compare the outcomes of transactions with what a read_committed reader sees.

    Args:
        known: Transactions by number.
        visible: Number of the transaction and place in it, for each visible record.
        position: The committed position, which each transaction sets to its number; -1 if there is none.
    """
    seen: dict[int, list[int]] = {}
    for number, place in visible:
        seen.setdefault(number, []).append(place)
    broken = Broken()
    for number, places in seen.items():
        size, outcome = known[number]
        broken.twice += len(places) - len(set(places))
        if outcome is Outcome.ABORTED:
            broken.aborted_visible += len(places)
        elif set(places) != set(range(size)):
            broken.incomplete += 1
    committed = [number for number, each in known.items() if each.outcome is Outcome.COMMITTED]
    broken.incomplete += sum(number not in seen for number in committed)
    broken.positions = int(position != max(seen, default=-1))
    return broken


def check_watermarks(places: Iterable[Place], ends: Mapping[int, int]) -> int:
    """Return how many partitions end before a record that was acknowledged before the ends were asked for."""
    newest: dict[int, int] = {}
    for partition, offset, _ in places:
        newest[partition] = max(offset, newest.get(partition, -1))
    return sum(ends[partition] <= offset for partition, offset in newest.items())
