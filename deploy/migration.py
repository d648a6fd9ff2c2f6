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
from deploy.schema import migrate, to_apply
from deploy.secrets_key import register, replace_key, secrets_key
from master_dataset.errors import CassandraUnavailableError
from master_dataset.kafka.topics import TopicChange, Topics, TopicSettings
from master_dataset.webhooks.endpoint_table import EndpointTable
from views.control.publication import PointerRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra.cluster import Session

    from deploy.cassandra import Address
    from deploy.settings import Settings
    from master_dataset.kafka.connection import KafkaConnection


SIGNED_SINCE = "028_secrets_key.cql"
"""The file of tables since which keys are signed. A row `former keys` of an earlier build is ignored."""


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
        self._wanted = TopicSettings(self.partitions, copies, retention_ms, settings.kafka.compression)

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
        """Return the files to apply. OperatorError if this release cannot use the tables of a newer one."""
        with self._session() as session:
            return to_apply(session, KEYSPACE)

    def shown(self, files: Sequence[Path]) -> Iterator[Change]:
        """Say what they do. CassandraUnavailableError."""
        for file in files:
            yield Change("cassandra", f"apply `{file.name}` to the keyspace `{KEYSPACE}`")
            if file.name == SIGNED_SINCE:
                yield from self._refused_keys()

    def _refused_keys(self) -> Iterator[Change]:
        """Name every key of a release that did not sign. None is signed here: somebody else may have written it."""
        with self._session() as session:
            known = session.cluster.metadata.keyspaces.get(KEYSPACE)
            if known is None or "api_keys" not in known.tables:
                return
            for row in session.execute(f"SELECT id, tenant, scopes FROM {KEYSPACE}.api_keys"):  # noqa: S608 - our own name
                which = f"the key `{row.id}` of the tenant `{row.tenant}` ({', '.join(sorted(row.scopes or ()))})"
                yield Change("cassandra", f"refuse {which}, until you have run: galatea keys sign {row.id}")

    def apply(self, settings: "Settings", *, with_new_key: bool = False) -> None:
        """Apply what is missing, and encrypt the secrets of former releases.

        Args:
            settings: Of the deployment.
            with_new_key: Whether the key file of this home replaces that of the deployment, which is lost.

        Raises:
            CassandraUnavailableError: Cassandra did not carry it out. It is safe to repeat it.
            OperatorError: The key file is missing, or is not that of the deployment.
        """
        with self._session() as session:
            copies = self._replication or min(THREE, len(session.cluster.metadata.all_hosts()))
            migrate(session, KEYSPACE, copies)
            PointerRow(session).begin(datetime.now(UTC))
            if with_new_key:
                replace_key(settings, session)
            register(settings, session)
            encrypt_secrets(settings, session)

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


def encrypt_secrets(settings: "Settings", session: "Session") -> None:
    """Encrypt webhook secrets that a former release has stored in clear.

    Nothing is done while a dispatcher runs: a new one does it by itself, and a former one needs them as they are.
    """
    if session.execute("SELECT process FROM process_releases WHERE component = 'dispatcher'").one() is None:
        table = EndpointTable(session, secrets_key(settings, session))
        for each in table.all():
            if each.is_in_clear:
                table.encrypt(each.endpoint)
