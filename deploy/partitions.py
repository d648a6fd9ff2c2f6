"""The partitions of a deployment's topics: how many there are, and adding some while events arrive (R3)."""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from batch_layer.fence import Markers
from deploy.cassandra import session_of
from master_dataset.errors import OperatorError
from master_dataset.kafka.growth import Growth, PartitionGrowths, Partitions, next_opening
from master_dataset.kafka.topics import Topics
from master_dataset.sources import registered_sources
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC
from views.control.generation import Generations

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

_SHOWN_SECONDS = 1.0


def all_topics() -> list[str]:
    """The topics that have equally many partitions: those of the sources, of alerts, and of their corrections."""
    return [*registered_sources(), ALERTS_TOPIC, CORRECTIONS_TOPIC]


def partitions_of(settings: "Settings", topics: Topics) -> Partitions:
    """Read how many partitions the topics have, and which of them may be read.

    Kafka is asked first: partitions are only added after a growth is recorded.

    Raises:
        BrokerUnavailableError: Kafka does not answer.
        CassandraUnavailableError: Cassandra does not.
    """
    found = len(topics.partitions(next(iter(registered_sources()))))
    session = session_of(settings.cassandra.address)
    return PartitionGrowths(session).read(min(found, _read_by_speed(session) or found))


def _read_by_speed(session: "Session") -> int:
    """How many partitions the served generation reads, 0 if there is none: others were added by another tool."""
    generations = Generations(session)
    ends = generations.claims.ends(generations.pointer().generation)
    return min((len(own) for own in ends.values()), default=0)


def checked_partitions(settings: "Settings", topics: Topics, names: Iterable[str]) -> Partitions:
    """As `partitions_of`, for a process that is about to read these topics.

    A setting that names a multiple is no error: `galatea migrate` has not been run yet.

    Raises:
        OperatorError: A topic has another number of partitions, or the sender's time.
        BrokerUnavailableError: Kafka does not answer.
        CassandraUnavailableError: Cassandra does not.
    """
    partitions, wanted = partitions_of(settings, topics), settings.kafka.partitions
    if not partitions.growths and wanted % partitions.original:
        message = f"the topics have {partitions.original} partitions and the setting says {wanted}; keys would move"
        raise OperatorError(message, do=f"set GALATEA_KAFKA_PARTITIONS={partitions.original}")
    unfinished = partitions.unfinished
    for name in names:
        topics.check(name, {partitions.added, unfinished.before if unfinished else partitions.added})
    return partitions


def closed_from(settings: "Settings") -> int:
    """Return how many partitions there were before the ones that the topics have and that are not open; 0: all are.

    A growth was cut off, or another tool added them. BrokerUnavailableError, CassandraUnavailableError.
    """
    topics = Topics(settings.kafka.connection)
    partitions = partitions_of(settings, topics)
    found = len(topics.partitions(next(iter(registered_sources()))))
    return partitions.open if partitions.unfinished is not None or found > partitions.open else 0


def grow(
    settings: "Settings",
    before: int,
    partitions: int,
    settle: timedelta,
    waiting: Callable[[float], None] = lambda _: None,
) -> Growth:
    """Add partitions to all topics, and open them. Continues a growth that was cut off.

    Args:
        settings: Those of the deployment, whose keyspace exists.
        before: How many partitions the topics have.
        partitions: How many they are to have.
        settle: How long producers may take to notice.
        waiting: Called every second with the seconds that are left of it.

    Returns:
        The growth, whose partitions are open.

    Raises:
        OperatorError: Another growth has to be finished first, or the number is no multiple.
        BrokerUnavailableError: Kafka does not answer. Run it again.
        CassandraUnavailableError: Cassandra does not. Run it again.
    """
    topics, growths = Topics(settings.kafka.connection), PartitionGrowths(session_of(settings.cassandra.address))
    growth = growths.begin(before, partitions, datetime.now(UTC))
    if growth.is_open:
        return growth
    topics.add_partitions(all_topics(), growth.partitions)
    settled_at = datetime.now(UTC) + settle
    while (left := (settled_at - datetime.now(UTC)).total_seconds()) > 0:
        waiting(left)
        time.sleep(min(left, _SHOWN_SECONDS))
    return _open(settings, growths, growth)


def _open(settings: "Settings", growths: PartitionGrowths, growth: Growth) -> Growth:
    """Announce when the partitions open, and confirm it while that lies ahead: a cut that misses them is before it."""
    skew = settings.layers.skew
    while True:
        sent = Markers(settings.kafka.connection).send(registered_sources(), growth.before)
        opens_at = next_opening(datetime.now(UTC), sent.stamps.values(), skew)
        growths.announce(growth, opens_at, sent.offsets)
        if datetime.now(UTC) < opens_at - skew and growths.confirm(growth, opens_at):
            return growth._replace(opens_at=opens_at, fences=sent.offsets, is_open=True)
