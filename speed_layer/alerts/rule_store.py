"""The book as Cassandra has it, the facts of stores that are written into it, and the ticks that let time pass."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.parsing.parse import MARKER_HEADER
from master_dataset.registry.rule_versions import GRID, RuleVersions
from master_dataset.registry.stores import Store
from views.alerts.rule_history import RuleHistory, StoredVersion

_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GIVE_UP_SECONDS = 30.0
_WAIT_SECONDS = 5.0
_LINGERING_MS = 3_600_000
_GRID_MS = GRID // _MS
"""Versions begin to hold at whole seconds."""


class CassandraRuleStore:
    """Shelf. Whatever is seen only after a reading begins holds no earlier than half a delay behind it.

    The other half is for the skew of clocks, and for a write that took long: it is stamped before it can be read.
    """

    def __init__(
        self, versions: RuleVersions, skew: timedelta, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """`skew`: how far the clocks of writers and readers may differ; less than the delay."""
        self._versions, self._skew, self._now = versions, skew, now

    def read(self) -> RuleHistory:
        """As of now. CassandraUnavailableError if Cassandra does not answer."""
        began = self._now()
        try:
            rows = list(self._versions.read())
        except CASSANDRA_UNAVAILABLE as error:
            raise CassandraUnavailableError("the rules of alerts cannot be read", do="galatea status") from error
        found = [
            StoredVersion((row.effective_at - _EPOCH) // _MS, row.kind, row.id, row.number, row.body) for row in rows
        ]
        return RuleHistory(found, (began + (self._versions.delay - self._skew) / 2 - _EPOCH) // _MS)

    def note(self, stores: Mapping[str, Store], beat: Callable[[], None] = lambda: None) -> None:
        """Write down what is registered and not said yet. CassandraUnavailableError. `beat`: one more is written."""
        try:
            said = {row.id: row.body for row in reversed([*self._versions.read()]) if row.kind == "store"}
            for store in stores.values():
                if said.get(store.id) != (body := store.to_json()):
                    self._versions.add("store", store.id, body)
                    beat()
        except CASSANDRA_UNAVAILABLE as error:
            raise CassandraUnavailableError("the stores cannot be noted for alerts", do="galatea status") from error


def ticked_topics(book: RuleHistory, now_ms: int) -> Sequence[str]:
    """Sources that a rule watches, or watched within the last hour.

    What was open by a rule that is taken away is resolved when the time of the log passes on behind it.
    """
    first_ms = (now_ms - _LINGERING_MS) // _GRID_MS * _GRID_MS
    moments = (*range(first_ms, now_ms + 1, _GRID_MS), now_ms)
    pages = {id(page): page for page in map(book.at, moments)}
    return sorted({topic for page in pages.values() for topic in page.by_topic})


class Ticker:
    """Writes markers into what rules watch, so that the time of a log passes while nothing else does."""

    def __init__(self, bootstrap: str, partitions: Sequence[int]) -> None:
        """`partitions`: of every source."""
        self._bootstrap, self._partitions = bootstrap, partitions
        self._producer: Producer | None = None
        self._refused: list[str] = []

    def tick(self, book: RuleHistory) -> None:
        """One marker into each partition of each source that a rule watches, or watched until lately.

        BrokerUnavailableError unless each is acknowledged; the next tick has a client of its own then, as one of which a
        record was refused may take none any more.
        """
        settings = producer_settings(self._bootstrap, "galatea-alerts-ticks", _GIVE_UP_SECONDS)
        producer, self._producer, self._refused = self._producer or Producer(settings), None, []
        for topic, partition in product(ticked_topics(book, (datetime.now(UTC) - _EPOCH) // _MS), self._partitions):
            try:
                producer.produce(
                    topic, value=b"", partition=partition, headers={MARKER_HEADER: b"1"}, on_delivery=self._written
                )
            except (KafkaException, BufferError) as error:
                self._refused.append(f"{topic}/{partition}: {error}")
        try:
            if left := producer.flush(_WAIT_SECONDS):
                self._refused.append(f"{left} were not acknowledged")
        except KafkaException as error:
            self._refused.append(str(error))
        if self._refused:
            with suppress(KafkaException):
                producer.purge()
            raise BrokerUnavailableError(f"a tick of alerts was not written: {self._refused[0]}", do="galatea status")
        self._producer = producer

    def _written(self, error: KafkaError | None, record: Message) -> None:
        if error is not None:
            self._refused.append(f"{record.topic()}/{record.partition()}: {error.str()}")
