"""A broker in memory: topics with transactions, and clients of it that speak like confluent_kafka's.

The broker's clock stands still but for `now`. What a client sends late is in `late`, and arrives some calls later.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition

AT_ONCE = 8
"""Records that a consumer is given at most."""
Place = tuple[str, int]


class Killed(BaseException):
    """The process that made the call has ended there."""


@dataclass
class Transaction:
    """`is_requested`: its owner has requested its commit. `offsets`: what it commits besides its records."""

    id: str
    offsets: dict[Place, int] = field(default_factory=dict)
    places: set[Place] = field(default_factory=set)
    is_requested: bool = False
    outcome: str = "open"


@dataclass
class Stored:
    """A record; a control record has no value and no headers, and nobody is given it."""

    offset: int
    stamp_ms: int
    value: bytes | None
    headers: Any = None
    transaction: Transaction | None = None
    is_control: bool = False


class Late(NamedTuple):
    """An EndTxn that is still on its way."""

    id: str
    epoch: int


def refused(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


class Broker:
    """`unrequested`: transactions of which something was committed although no commit was requested."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.now_ms = chance, 1_800_000_000_000
        self.logs: dict[Place, list[Stored]] = {}
        self.committed: dict[Place, int] = {}
        self.epochs: dict[str, int] = {}
        self.open: dict[str, Transaction] = {}
        self.late: list[Late] = []
        self.unrequested = 0
        self.before_call: Callable[[], None] = lambda: None
        self.before_answer: Callable[[], None] = lambda: None
        """Of a commit that is on its way."""

    def called(self) -> None:
        """A client calls: something late may arrive before, and the caller may end."""
        if self.late and self.chance.random() < 0.1:
            self._end(*self.late.pop(self.chance.randrange(len(self.late))))
        self.before_call()

    def log(self, place: Place) -> list[Stored]:
        return self.logs.setdefault(place, [])

    def append(self, place: Place, value: bytes | None, headers: Any = None, tx: Transaction | None = None) -> Stored:
        log = self.log(place)
        log.append(Stored(len(log), self.now_ms, value, headers, tx))
        return log[-1]

    def stable(self, place: Place) -> int:
        """The offset before which every transaction is decided."""
        return next((each.offset for each in self.log(place) if _is_open(each)), len(self.log(place)))

    def visible(self, place: Place, *, committed: bool = True) -> list[Stored]:
        """What a reader is given."""
        until = self.stable(place) if committed else len(self.log(place))
        return [
            each
            for each in self.log(place)[:until]
            if not each.is_control
            and not (committed and each.transaction is not None and each.transaction.outcome == "aborted")
        ]

    def begin_epoch(self, id_: str) -> int:
        """Abort open transactions, and fence the former owner of the id."""
        self.finish(id_, "aborted")
        self.epochs[id_] = self.epochs.get(id_, 0) + 1
        return self.epochs[id_]

    def transaction(self, id_: str, epoch: int) -> Transaction:
        if self.epochs.get(id_) != epoch:
            raise refused(KafkaError.PRODUCER_FENCED)
        return self.open.setdefault(id_, Transaction(id_))

    def finish(self, id_: str, outcome: str) -> None:
        """Decide what is open of this id."""
        found = self.open.pop(id_, None)
        if found is None:
            return
        found.outcome = outcome
        self.unrequested += outcome == "committed" and not found.is_requested
        for place in found.places:
            log = self.log(place)
            log.append(Stored(len(log), self.now_ms, None, is_control=True))
        if outcome == "committed":
            self.committed |= found.offsets

    def _end(self, id_: str, epoch: int) -> None:
        """A commit arrives. One of an older epoch is refused, one that finds nothing open is no news."""
        if self.epochs.get(id_) == epoch:
            self.finish(id_, "committed")


def _is_open(each: Stored) -> bool:
    return each.transaction is not None and each.transaction.outcome == "open"


class Message:
    """As a consumer gives it; `error`: the end of what there is."""

    def __init__(self, place: Place, offset: int, stored: Stored | None) -> None:
        self._place, self._offset, self._stored = place, offset, stored

    def error(self) -> KafkaError | None:
        return None if self._stored else KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001 - its name

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b""

    def value(self) -> bytes | None:
        return self._stored.value if self._stored else None

    def headers(self) -> Any:
        return self._stored.headers if self._stored else None

    def timestamp(self) -> tuple[int, int]:
        return 2, self._stored.stamp_ms if self._stored else 0


class Admin:
    """Says what topics are: the same at all times, of one partition."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe_topics(self, topics: TopicCollection) -> dict[str, Future[Any]]:
        self._broker.called()
        found = dict[str, Future[Any]]()
        for topic in topics.topic_names:
            found[topic] = Future()
            found[topic].set_result(SimpleNamespace(topic_id=f"id of {topic}", partitions=[0]))
        return found

    def list_offsets(self, specs: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        self._broker.called()
        found = dict[TopicPartition, Future[Any]]()
        for each in specs:
            found[each] = Future()
            found[each].set_result(SimpleNamespace(offset=len(self._broker.log((each.topic, each.partition)))))
        return found


class Consumer:
    """Of one or some partitions. `idle` is called when there is nothing more to give."""

    def __init__(self, broker: Broker, settings: dict[str, Any], idle: Callable[[], None]) -> None:
        self._broker, self._settings, self._idle = broker, settings, idle
        self._at: dict[Place, int] = {}
        self._is_paused = self.is_dead = False
        self._is_committed_only = settings.get("isolation.level") == "read_committed"

    def consumer_group_metadata(self) -> object:
        return None

    def subscribe(self, topics: Sequence[str], on_assign: Callable[..., None], **_: object) -> None:
        """Alone in its group: it has every partition, from where the group has committed."""
        self._at = {place: self._broker.committed.get(place, 0) for place in self._broker.logs if place[0] in topics}
        on_assign(self, self.assignment())

    def assign(self, places: Sequence[TopicPartition]) -> None:
        self._broker.called()
        self._at = {(each.topic, each.partition): each.offset for each in places}

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(*place) for place in self._at]

    def pause(self, _: object) -> None:
        self._is_paused = True

    def resume(self, _: object) -> None:
        self._is_paused = False

    def committed(self, places: Sequence[TopicPartition], _: float) -> list[TopicPartition]:
        self._broker.called()
        return [
            TopicPartition(each.topic, each.partition, self._broker.committed.get((each.topic, each.partition), -1001))
            for each in places
        ]

    def get_watermark_offsets(self, place: TopicPartition, _: float) -> tuple[int, int]:
        self._broker.called()
        where = place.topic, place.partition
        return 0, self._broker.stable(where) if self._is_committed_only else len(self._broker.log(where))

    def consume(self, most: int, _: float) -> list[Message]:
        self._broker.called()
        if self._settings.get("enable.auto.commit") and not self.is_dead:  # what was handed out before counts as done
            self._broker.committed |= self._at
        if self._is_paused or self.is_dead:
            return []
        found = list(self._next(min(most, self._broker.chance.randint(1, AT_ONCE))))
        if not any(each.error() is None for each in found):
            self._idle()
        return found

    def _next(self, most: int) -> Iterator[Message]:
        for place, at in self._at.items():
            end = self._broker.stable(place) if self._is_committed_only else len(self._broker.log(place))
            given = [
                each for each in self._broker.visible(place, committed=self._is_committed_only) if at <= each.offset
            ]
            for each in given[:most]:
                yield Message(place, each.offset, each)
            self._at[place] = given[most - 1].offset + 1 if len(given) >= most else max(at, end)
            if self._at[place] == end:
                yield Message(place, end, None)

    def commit(self, offsets: Sequence[TopicPartition], *, asynchronous: bool) -> None:
        assert not asynchronous
        if self.is_dead:
            return
        self._broker.called()
        self._broker.committed |= {(each.topic, each.partition): each.offset for each in offsets}

    def close(self) -> None:
        self._at = {}
