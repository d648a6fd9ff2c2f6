"""A broker in memory, as far as transactions go: epochs, open and late ends, positions that wait for an end.

Only what an alert processor does can be done with it: one group, one transaction at a time for each transactional id.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException

Place = tuple[str, int]
"""Topic and partition."""
Headers = Sequence[tuple[str, bytes]]
PATIENCE = 5
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class Transaction:
    """Records and positions of it are in the log of their partitions; `state` says what they are worth."""

    def __init__(self) -> None:
        """Begun by its first record or position."""
        self.state = OPEN
        self.places = set[Place]()
        self.positions = dict[Place, int]()
        self.notes = dict[Place, str]()


@dataclass
class Slot:
    """One offset of a log: a record, or the mark of an end (`value` None), which takes an offset too."""

    value: bytes | None
    stamp_ms: int = 0
    transaction: Transaction | None = None
    headers: Headers = ()

    def is_visible(self, isolation: str) -> bool:
        """To a reader of that isolation."""
        if self.value is None:
            return False
        return self.transaction is None or isolation != "read_committed" or self.transaction.state == COMMITTED


@dataclass
class _Owner:
    epoch: int = 0
    transaction: Transaction | None = None


@dataclass
class MemoryKafka:
    """`back`: how often a committed position went back. `late`: ends that the network still holds, with their epoch.

    `notes`: what is said beside a position. `ids`: of topics that were made anew. `firsts`: of what was not deleted.
    `now_ms`: with which it stamps what is written.
    """

    logs: dict[Place, list[Slot]] = field(default_factory=dict)
    committed: dict[Place, int] = field(default_factory=dict)
    notes: dict[Place, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    firsts: dict[Place, int] = field(default_factory=dict)
    now_ms: int = 0
    owners: dict[str, _Owner] = field(default_factory=dict)
    late: list[tuple[str, int]] = field(default_factory=list)
    back: int = 0
    polls: int = 0

    def id_of(self, topic: str) -> str:
        """Of a topic; one that is made anew has another."""
        return self.ids.get(topic, f"id of {topic}")

    def init(self, name: str) -> int:
        """The epoch of the new owner; what the one before has left open is aborted."""
        owner = self.owners.setdefault(name, _Owner())
        self._end(owner, ABORTED)
        owner.epoch += 1
        return owner.epoch

    def write(self, name: str, epoch: int, place: Place, value: bytes, headers: Headers = ()) -> None:
        """A record of the transaction of that owner, which it begins if none is open."""
        transaction = self._begun(name, epoch)
        transaction.places.add(place)
        self.logs.setdefault(place, []).append(Slot(value, self.now_ms, transaction, headers))

    def send_positions(self, name: str, epoch: int, positions: dict[Place, int], notes: dict[Place, str]) -> None:
        """They count from the commit on."""
        transaction = self._begun(name, epoch)
        transaction.positions.update(positions)
        transaction.notes.update(notes)

    def end(self, name: str, epoch: int, state: str = COMMITTED) -> None:
        """Of whatever is open; a commit that is repeated when nothing is open is confirmed."""
        self._end(self._owner(name, epoch), state)

    def arrive(self, number: int) -> None:
        """One of the late ends comes: nobody hears of the answer."""
        name, epoch = self.late.pop(number)
        if self.owners[name].epoch == epoch:
            self._end(self.owners[name], COMMITTED)

    def stable_end(self, place: Place) -> int:
        """Before the first record of an open transaction."""
        log = self.logs.get(place, [])
        waits = (at for at, slot in enumerate(log) if slot.transaction and slot.transaction.state == OPEN)
        return next(waits, len(log))

    def position(self, place: Place) -> int:
        """The committed one, or -1001. KafkaException while a transaction that holds one is open.

        Its time is over when it was asked for often: then it is aborted, and its owner refused.
        """
        for owner in self.owners.values():
            if owner.transaction and place in owner.transaction.positions:
                self.polls += 1
                if self.polls % PATIENCE == 0:
                    self._end(owner, ABORTED)
                    owner.epoch += 1
                raise KafkaException(KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT))
        return self.committed.get(place, -1001)

    def _owner(self, name: str, epoch: int) -> _Owner:
        if self.owners[name].epoch != epoch:
            raise KafkaException(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH))
        return self.owners[name]

    def _begun(self, name: str, epoch: int) -> Transaction:
        owner = self._owner(name, epoch)
        owner.transaction = owner.transaction or Transaction()
        return owner.transaction

    def _end(self, owner: _Owner, state: str) -> None:
        transaction, owner.transaction = owner.transaction, None
        if transaction is None:
            return
        transaction.state = state
        for place in sorted(transaction.places):
            self.logs[place].append(Slot(None))
        if state == COMMITTED:
            self.back += sum(at < self.committed.get(place, -1) for place, at in transaction.positions.items())
            self.committed |= transaction.positions
            self.notes |= transaction.notes
