"""The rule history in Cassandra, the stores that are recorded in it, and the ticks that let time pass."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.parsing.parse import MARKER_HEADER
from master_dataset.registry.rule_versions import GRID, RuleVersions
from master_dataset.registry.stores import Store
from views.alerts.rule_history import OF_NOBODY, RuleHistory, StoredVersion
from views.core.cut import UNIX_EPOCH

_MS = timedelta(milliseconds=1)
_GIVE_UP_SECONDS = 30.0
_WAIT_SECONDS = 5.0
_TICKED_AFTER_MS = 3_600_000
_GRID_MS = GRID // _MS
"""Versions take effect at whole seconds."""


class CassandraRuleStore:
    """Implements `RuleStore`.

    A version that a reading does not see takes effect no earlier than half a delay after the reading begins. The other
    half allows for clock skew, and for slow writes: those that take longer are void (`RuleVersions.horizon`).
    """

    def __init__(
        self, versions: RuleVersions, skew: timedelta, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """`skew`: how far the clocks of writers and readers may differ; less than the delay."""
        self._versions, self._skew, self._now = versions, skew, now

    def read(self) -> RuleHistory:
        """Read all current versions. CassandraUnavailableError."""
        began = self._now()
        try:
            rows = list(self._versions.read())
        except CASSANDRA_UNAVAILABLE as error:
            raise CassandraUnavailableError("the rules of alerts cannot be read", do="galatea status") from error
        found = [
            StoredVersion((row.effective_at - UNIX_EPOCH) // _MS, row.kind, row.id, row.number, row.body)
            for row in rows
        ]
        return RuleHistory(found, (began + self._versions.horizon(self._skew) - UNIX_EPOCH) // _MS)

    def record_stores(self, stores: Mapping[str, Store], beat: Callable[[], None] = lambda: None) -> None:
        """Append a version for each store whose facts have changed. CassandraUnavailableError.

        Args:
            stores: All that are registered. One that is recorded and not among them has been removed.
            beat: Called after each version.
        """
        try:
            recorded = {row.id: row.body for row in reversed([*self._versions.read()]) if row.kind == "store"}
            removed = {id_: Store(id_, "UTC", tenant=OF_NOBODY).to_json() for id_ in recorded}
            current = removed | {store.id: store.to_json() for store in stores.values()}
            for id_, body in current.items():
                if recorded.get(id_) != body:
                    self._versions.add("store", id_, body)
                    beat()
        except CASSANDRA_UNAVAILABLE as error:
            raise CassandraUnavailableError("the stores cannot be recorded for alerts", do="galatea status") from error


def ticked_topics(history: RuleHistory, now_ms: int) -> Sequence[str]:
    """Sources that a rule watches, or watched within the last hour.

    Alerts of a deleted rule are resolved as log time advances.
    """
    first_ms = (now_ms - _TICKED_AFTER_MS) // _GRID_MS * _GRID_MS
    moments = (*range(first_ms, now_ms + 1, _GRID_MS), now_ms)
    rule_sets = {id(each): each for each in map(history.at, moments)}
    return sorted({topic for each in rule_sets.values() for topic in each.by_topic})


class Ticker:
    """Writes markers to the sources that rules watch, so that log time advances without events."""

    def __init__(self, kafka: KafkaConnection, partitions: Sequence[int]) -> None:
        """`partitions`: of every source."""
        self._kafka, self._partitions = kafka, partitions
        self._producer: Producer | None = None
        self._failed: list[str] = []

    def tick(self, history: RuleHistory) -> None:
        """Write one marker to each partition of each of `ticked_topics`.

        BrokerUnavailableError unless all are acknowledged. The next tick then uses a new client, because a client that
        failed may no longer accept records.
        """
        settings = producer_settings(self._kafka, "galatea-alerts-ticks", _GIVE_UP_SECONDS)
        producer, self._producer, self._failed = self._producer or Producer(settings), None, []
        now_ms = (datetime.now(UTC) - UNIX_EPOCH) // _MS
        for topic, partition in product(ticked_topics(history, now_ms), self._partitions):
            try:
                producer.produce(
                    topic, value=b"", partition=partition, headers={MARKER_HEADER: b"1"}, on_delivery=self._delivered
                )
            except (KafkaException, BufferError) as error:
                self._failed.append(f"{topic}/{partition}: {error}")
        try:
            if left := producer.flush(_WAIT_SECONDS):
                self._failed.append(f"{left} were not acknowledged")
        except KafkaException as error:
            self._failed.append(str(error))
        if self._failed:
            with suppress(KafkaException):
                producer.purge()
            raise BrokerUnavailableError(f"a tick of alerts was not written: {self._failed[0]}", do="galatea status")
        self._producer = producer

    def _delivered(self, error: KafkaError | None, record: Message) -> None:
        if error is not None:
            self._failed.append(f"{record.topic()}/{record.partition()}: {error.str()}")
