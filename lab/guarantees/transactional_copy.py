"""A loop that reads one topic, writes to others and commits both together: exactly once, if a few rules are kept.

In order, and each for a reason:

1. `init_transactions` first. It settles what the previous owner of this transactional id has left open. Whoever asks
   for the committed position before that may be told an older one, and copies again.
2. Only then read the committed position, and stand there.
3. begin, produce, `flush` and look at every report. What failed must not be committed.
4. `send_offsets_to_transaction` with where to go on: the position behind the last record, not its offset.
5. commit.
6. Look at the connection. If it broke, or a request was repeated or timed out since `begin`, the client may have sent
   the end of the transaction twice without saying so, and the network may still hold the first. If that arrives while
   the next transaction is open, it ends that one, half-way: same producer, same epoch, and nothing tells it from a new
   one. So discard the producer and begin from the top: `init_transactions` raises the epoch, and the late one is
   refused.

`keeps_producer` leaves rule 6 out, to show what happens then.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lab.guarantees.clients import COMMITTED, committed, consumer, flush, producer, until_end

_TIMEOUT_SECONDS = 60.0
_STATISTICS_MS = 50
_AFTER_COMMIT = 2
"""Statistics to wait for: the first may have been taken just before the commit was done."""
CALLS = ("init", "begin", "first target", "second target", "offsets", "commit")
"""Behind which a process may die, or a network may deliver what it held."""

Passed = Callable[[str], None]


class Abandoned(Exception):
    """The application gives the transaction up; it is done again."""


class Route(NamedTuple):
    """From where to where, two targets, and as whom. `per_transaction`: records."""

    bootstrap: str
    source: str
    targets: Sequence[str]
    transactional_id: str
    per_transaction: int = 10


class ConnectionErrors:
    """What a producer's statistics say of its connections: how often something was repeated, broke or timed out."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.heard, self.count = 0, 0

    def hear(self, statistics: str) -> None:
        """Called by the producer every so often."""
        brokers = json.loads(statistics)["brokers"].values()
        self.count = sum(each["txretries"] + each["disconnects"] + each["req_timeouts"] for each in brokers)
        self.heard += 1

    def now(self, of: Producer) -> int:
        """As of a moment that is certainly behind the call. TimeoutError if the producer has gone silent."""
        of.poll(0)
        enough, deadline = self.heard + _AFTER_COMMIT, time.monotonic() + _TIMEOUT_SECONDS
        while self.heard < enough:
            if time.monotonic() > deadline:
                raise TimeoutError("the producer says nothing of itself any more")
            of.poll(_STATISTICS_MS / 1000)
        return self.count


class TransactionalCopy:
    """Copies every record to both targets until the source has no more. `passed` is called behind every call."""

    def __init__(self, route: Route, passed: Passed = lambda _call: None, *, keeps_producer: bool = False) -> None:
        """`keeps_producer`: go on with the producer whatever has happened to its connections."""
        self._route, self._passed, self._keeps_producer = route, passed, keeps_producer
        self._trouble = ConnectionErrors()
        self._producer: Producer | None = None
        self.discarded = 0

    def run(self) -> None:
        """Copy to the end."""
        while not self._copy():
            continue

    def _copy(self) -> bool:
        """From the top: whether the end of the source was reached, else begin again."""
        if self._producer is None:
            self._trouble = ConnectionErrors()
            self._producer = _transactional(self._route, self._trouble)
            self._producer.init_transactions(_TIMEOUT_SECONDS)  # rule 1
            self._trouble.now(self._producer)  # what it took to begin is no trouble of a transaction
            self._passed("init")
        reader = consumer(self._route.bootstrap, self._route.transactional_id, {"isolation.level": COMMITTED})
        try:
            place = TopicPartition(self._route.source, 0, committed(reader, self._route.source))  # rule 2
            reader.list_topics(self._route.source, timeout=_TIMEOUT_SECONDS)
            reader.assign([place])
            return self._transactions(reader)
        finally:
            reader.close()

    def _transactions(self, reader: Consumer) -> bool:
        for records in _portions(reader, self._route.per_transaction):
            assert self._producer is not None  # noqa: S101 - made a moment ago, or the loop has ended
            before = self._trouble.count
            try:
                self._transaction(self._producer, reader, records)
            except Abandoned:
                self._producer.abort_transaction(_TIMEOUT_SECONDS)
                self._discard_unless_kept()
                return False
            if self._trouble.now(self._producer) > before and not self._keeps_producer:  # rule 6
                self._discard_unless_kept()
                return False
        return True

    def _transaction(self, sender: Producer, reader: Consumer, records: Sequence[Message]) -> None:
        sender.begin_transaction()
        self._passed("begin")
        for target, call in zip(self._route.targets, CALLS[2:4], strict=True):
            _send(sender, target, records)  # rule 3
            self._passed(call)
        go_on = TopicPartition(self._route.source, 0, (records[-1].offset() or 0) + 1)  # rule 4
        sender.send_offsets_to_transaction([go_on], reader.consumer_group_metadata(), _TIMEOUT_SECONDS)
        self._passed("offsets")
        sender.commit_transaction(_TIMEOUT_SECONDS)  # rule 5
        self._passed("commit")

    def _discard_unless_kept(self) -> None:
        if not self._keeps_producer:
            self._producer = None
            self.discarded += 1


def settle(route: Route) -> None:
    """End whatever a dead owner of the route has left open, as the next owner would."""
    _transactional(route, ConnectionErrors()).init_transactions(_TIMEOUT_SECONDS)


def _transactional(route: Route, trouble: ConnectionErrors) -> Producer:
    return producer(
        route.bootstrap,
        transactional_id=route.transactional_id,
        transaction_timeout_ms=30_000,
        batch_num_messages=1000,
        statistics_interval_ms=_STATISTICS_MS,
        stats_cb=trouble.hear,
    )


def _send(sender: Producer, target: str, records: Sequence[Message]) -> None:
    """Send and look at every report. KafkaException if one failed."""
    failed: list[KafkaError] = []

    def reported(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    for record in records:
        sender.produce(target, record.value(), on_delivery=reported)
        sender.poll(0)
    flush(sender)
    if failed:
        raise KafkaException(failed[0])


def _portions(reader: Consumer, size: int) -> Iterator[Sequence[Message]]:
    portion: list[Message] = []
    for message in until_end(reader):
        portion.append(message)
        if len(portion) == size:
            yield portion
            portion = []
    if portion:
        yield portion
