"""What a deployment needs in Kafka, in Cassandra and on disk: what is missing, and bringing it there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra import DriverException

from deploy.cassandra import connect
from deploy.clusters import KEYSPACE
from deploy.local.nodes import THREE
from deploy.partitions import all_topics
from deploy.schema import migrate, pending
from master_dataset.errors import CassandraUnavailableError
from master_dataset.kafka.topics import TopicChange, Topics, TopicSettings
from views.control.publication import PointerRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra.cluster import Session

    from deploy.cassandra import Address
    from deploy.settings import Settings
    from master_dataset.kafka.connection import KafkaConnection


class Change(NamedTuple):
    """One thing to do. `system`: home, kafka, cassandra or disk; `what`: a sentence without its subject."""

    system: str
    what: str


class TopicMigration:
    """The topics."""

    def __init__(self, settings: "Settings", kafka: "KafkaConnection", replication: int = 0) -> None:
        """`kafka`: the way there. `replication`: copies of each record; 0: three, or as many as there are brokers."""
        self._topics = Topics(kafka)
        copies = replication or min(THREE, self._topics.brokers())
        retention_ms = int(settings.kafka.retention.total_seconds() * 1000)
        found = max(self._topics.counts(all_topics()).values(), default=0)
        # They cannot be reduced: if some were added, an old setting is none to follow, and new topics need as many.
        self.partitions = (
            settings.kafka.partitions if found % settings.kafka.partitions else max(found, settings.kafka.partitions)
        )
        """How many partitions each topic is to have."""
        self._wanted = TopicSettings(self.partitions, copies, retention_ms)

    @staticmethod
    def without_growth(changes: Sequence[TopicChange]) -> Sequence[TopicChange]:
        """Leave out partitions that would be added to topics that exist."""
        kept = [each for each in changes if each.is_new or each.options]
        return [each if each.is_new else replace(each, grows_from=None) for each in kept]

    def plan(self) -> Sequence[TopicChange]:
        """Return what is missing or differs. OperatorError if it cannot be changed."""
        return self._topics.planned(all_topics(), self._wanted)

    def shown(self, changes: Sequence[TopicChange]) -> Iterator[Change]:
        """Say what they do."""
        number = self._wanted.partitions
        size = f" with {number} partitions and {self._wanted.replication} copies"
        for each in changes:
            options = ", ".join(f"{name}={value}" for name, value in each.options.items())
            if each.is_new:
                yield Change("kafka", f"create the topic `{each.topic}`{size}: {options}")
            elif options:
                yield Change("kafka", f"alter the topic `{each.topic}`: {options}")
            if each.grows_from:
                yield Change("kafka", f"add partitions to the topic `{each.topic}`: {each.grows_from} become {number}")

    def apply(self, changes: Sequence[TopicChange]) -> None:
        """Make them, but for added partitions, which need the tables: `deploy.partitions`. BrokerUnavailableError."""
        self._topics.apply(changes, self._wanted)


class TableMigration:
    """The keyspace and its tables."""

    def __init__(self, address: "Address", replication: "int | Mapping[str, int]" = 0) -> None:
        """`address`: of the cluster. `replication`: as `migrate`; 0: three copies, or one on each node."""
        self._address, self._replication = replace(address, keyspace=None), replication

    def plan(self) -> Sequence[Path]:
        """Return the files to apply. OperatorError if a newer release has been there."""
        with self._session() as session:
            return pending(session, KEYSPACE)

    def shown(self, files: Sequence[Path]) -> Iterator[Change]:
        """Say what they do."""
        return (Change("cassandra", f"apply `{file.name}` to the keyspace `{KEYSPACE}`") for file in files)

    def apply(self) -> None:
        """Apply what is missing. CassandraUnavailableError."""
        with self._session() as session:
            migrate(session, KEYSPACE, self._replication or min(THREE, len(session.cluster.metadata.all_hosts())))
            PointerRow(session).begin(datetime.now(UTC))

    @contextmanager
    def _session(self) -> Iterator["Session"]:
        session = connect(self._address)
        try:
            yield session
        except DriverException as error:
            message = f"Cassandra did not carry out a change: {error}"
            raise CassandraUnavailableError(message, do="galatea doctor, then: galatea migrate") from error
        finally:
            session.cluster.shutdown()


def missing_folders(settings: "Settings") -> Sequence[Path]:
    """Return the local folders of tables and checkpoints that do not exist yet."""
    uris = (settings.paths.master_uri, settings.paths.corrected_uri, settings.paths.checkpoint_uri)
    return [folder for uri in uris if "://" not in uri and not (folder := Path(uri)).exists()]
