"""A loop that reads one topic, writes to others and commits both together: exactly once, if some rules are kept.

In this order, each for a reason:

1. `init_transactions` first. It settles what the previous owner of this transactional id has left open. A process that
   asks for the committed offset before that may get an older one, and copies again.
2. Only then read the committed offset and continue there.
3. begin, produce, `flush` and check every delivery report. If one failed, the transaction must not be committed.
4. `send_offsets_to_transaction` with where to continue: the offset after the last record.
5. commit.
6. Check the connection. If it broke, or a request was resent or timed out since `begin`, the client may have sent the
   end of the transaction twice without reporting it, and the network may still hold the first one. If that arrives
   while the next transaction is open, it ends that one half-way: it has the same producer and epoch, so nothing
   distinguishes it from a new one. So discard the producer and start from the top: `init_transactions` raises the
   epoch, and the late request is rejected.

`keeps_producer` leaves rule 6 out, to show what happens then.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lab.guarantees.clients import COMMITTED, committed, consumer, flush, producer, until_end
from master_dataset.kafka.connection import KafkaConnection

_TIMEOUT_SECONDS = 60.0
_STATISTICS_MS = 50
_AFTER_COMMIT = 2
"""Number of statistics to wait for: the first one may have been taken just before the commit."""
CALLS = ("init", "begin", "first target", "second target", "offsets", "commit")
"""Calls after which a process may be killed, or a held request delivered."""

Passed = Callable[[str], None]


class AbandonedError(Exception):
    """The application aborts the transaction and repeats it."""


class Route(NamedTuple):
    """A source, two targets, and the transactional id. `per_transaction`: number of records."""

    kafka: KafkaConnection
    source: str
    targets: Sequence[str]
    transactional_id: str
    per_transaction: int = 10


class ConnectionErrors:
    """Counts retries, disconnects and timeouts of a producer from its statistics."""

    def __init__(self) -> None:
        """Start at zero."""
        self.heard, self.count = 0, 0

    def hear(self, statistics: str) -> None:
        """Called by the producer with its statistics."""
        brokers = json.loads(statistics)["brokers"].values()
        self.count = sum(each["txretries"] + each["disconnects"] + each["req_timeouts"] for each in brokers)
        self.heard += 1

    def now(self, of: Producer) -> int:
        """Return the count from statistics taken after the call. Raises TimeoutError if none arrive."""
        of.poll(0)
        enough, deadline = self.heard + _AFTER_COMMIT, time.monotonic() + _TIMEOUT_SECONDS
        while self.heard < enough:
            if time.monotonic() > deadline:
                raise TimeoutError("the producer has stopped to report statistics")
            of.poll(_STATISTICS_MS / 1000)
        return self.count


class TransactionalCopy:
    """Copies every record to both targets until the end of the source. `passed` is called after every call."""

    def __init__(self, route: Route, passed: Passed = lambda _call: None, *, keeps_producer: bool = False) -> None:
        """`keeps_producer`: keep the producer, whatever happened to its connections."""
        self._route, self._passed, self._keeps_producer = route, passed, keeps_producer
        self._errors = ConnectionErrors()
        self._producer: Producer | None = None
        self.discarded = 0

    def run(self) -> None:
        """Copy to the end of the source."""
        while not self._copy():
            continue

    def _copy(self) -> bool:
        """Start from the top; return whether the end of the source was reached."""
        if self._producer is None:
            self._errors = ConnectionErrors()
            self._producer = _transactional(self._route, self._errors)
            self._producer.init_transactions(_TIMEOUT_SECONDS)  # rule 1
            self._errors.now(self._producer)  # errors before the first transaction do not count
            self._passed("init")
        reader = consumer(self._route.kafka, self._route.transactional_id, {"isolation.level": COMMITTED})
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
            before = self._errors.count
            try:
                self._transaction(self._producer, reader, records)
            except AbandonedError:
                self._producer.abort_transaction(_TIMEOUT_SECONDS)
                self._discard_unless_kept()
                return False
            if self._errors.now(self._producer) > before and not self._keeps_producer:  # rule 6
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
    """Settle what a killed owner of the route has left open, as the next owner would."""
    _transactional(route, ConnectionErrors()).init_transactions(_TIMEOUT_SECONDS)


def _transactional(route: Route, errors: ConnectionErrors) -> Producer:
    return producer(
        route.kafka,
        transactional_id=route.transactional_id,
        transaction_timeout_ms=30_000,
        batch_num_messages=1000,
        statistics_interval_ms=_STATISTICS_MS,
        stats_cb=errors.hear,
    )


def _send(sender: Producer, target: str, records: Sequence[Message]) -> None:
    """Send, and check every delivery report. Raises KafkaException if one failed."""
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
