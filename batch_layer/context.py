"""What batch work of one deployment needs: connections, tables, clocks and limits. `deploy.batch` builds it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from batch_layer.fence import Fence
from batch_layer.master import Master
from master_dataset.delta.tables import MasterTables
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.visits.visit import VisitRules
from views.alerts.signatures import AlertSignatures
from views.alerts.timings import AlertTimings
from views.control.publication import Publication

if TYPE_CHECKING:
    from cassandra.cluster import Session


@dataclass(frozen=True)
class BatchContext:
    """What batch work needs of one deployment.

    Attributes:
        connect: Returns a session in Galatea's keyspace; also called in Spark's workers, so it must be picklable.
        tables: The tables of the master dataset.
        fence: Makes cuts; its epoch is that of the deployment.
        definitions: The current definitions, see `views.registry.current_definitions`.
        visits: When sightings make a visit.
        oldest: A of R5: events that are older on arrival are left to batch.
        few_events: Up to so many archived events of a source are computed in this process, without Spark.
        prompt_correction_days: A rebuild that late events start by themselves recomputes at most so many days.
        cut_timeout: How long to wait until the archive or the speed layer has read up to a cut.
        speed_ttl: How long speed rows are kept.
        retention: How long the topics keep records.
        kafka: The Kafka cluster.
        partitions: Reads how many partitions the topics have.
        timings: Those of alerts.
        signatures: Returns those of alerts.
    """

    connect: "Callable[[], Session]"
    tables: MasterTables
    fence: Fence
    definitions: Mapping[str, str]
    visits: VisitRules
    oldest: timedelta
    few_events: int
    prompt_correction_days: int
    cut_timeout: timedelta
    speed_ttl: timedelta
    retention: timedelta
    kafka: KafkaConnection
    partitions: Callable[[], Partitions]
    timings: AlertTimings
    signatures: Callable[[], AlertSignatures]

    @property
    def session(self) -> "Session":
        """The session of this process."""
        return self.connect()

    def masters_of(self, publication: Publication) -> Mapping[str, Master]:
        """The tables at the versions that the rebuild read.

        A partial rebuild relies on older versions than it reads.
        """
        versions = publication.stats.read_versions or publication.master_versions
        return {topic: Master(self.tables.path(topic), version) for topic, version in versions.items()}
