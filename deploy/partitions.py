"""The partitions of a deployment's topics: how many there are, and adding some while events arrive (R3)."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cassandra import DriverException

from batch_layer.fence import Markers
from deploy.cassandra import session_of
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE, ArchivePositions, leased
from master_dataset.errors import (
    CassandraUnavailableError,
    DependencyUnavailableError,
    OperatorError,
    PartitionsOpenedError,
)
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.growth import Growth, PartitionGrowths, Partitions, next_opening
from master_dataset.kafka.topics import Topics
from master_dataset.sources import registered_sources
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC
from views.control.generation import Generations

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

LEASE = "partitions"
_LEASE_SECONDS = 60
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
    sources = list(registered_sources())
    found, ids = len(topics.partitions(sources[0])), topics.ids(sources)
    session = session_of(settings.cassandra.address)
    with _translated():
        return PartitionGrowths(session).read(min(found, _read_by_speed(session) or found), ids)


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
    for name in names:
        try:
            topics.check(name, _numbers(partitions))
        except DependencyUnavailableError:
            raise
        except OperatorError:  # they may be growing just now
            topics.check(name, _numbers(partitions_of(settings, topics)))
    return partitions


def refuse_opened(readable: int, read: int) -> None:
    """Raise PartitionsOpenedError if a process may read more partitions than it was started with."""
    if readable > read:
        message = f"{readable} partitions can be read, and this process reads {read}"
        raise PartitionsOpenedError(message, do="no action needed: its supervisor restarts it, to read all of them")


def _numbers(partitions: Partitions) -> set[int]:
    """How many partitions a topic may have: while some are added, one may have them already."""
    return {partitions.added, partitions.open}


def closed_from(settings: "Settings") -> int:
    """Return how many partitions there were before the ones that the topics have and that are not open; 0: all are.

    A growth was cut off, or another tool added them. BrokerUnavailableError, CassandraUnavailableError.
    """
    topics = Topics(settings.kafka.connection)
    partitions = partitions_of(settings, topics)
    found = len(topics.partitions(next(iter(registered_sources()))))
    return partitions.open if partitions.unfinished is not None or found > partitions.open else 0


def grow(
    settings: "Settings", partitions: int, settle: timedelta, waiting: Callable[[float], None] = lambda _: None
) -> None:
    """Add partitions to all topics, and open them. Continues a growth that was cut off. One process at a time.

    Args:
        settings: Those of the deployment, whose keyspace exists.
        partitions: How many the topics are to have.
        settle: How long producers may take to notice, and to deliver what is on its way.
        waiting: Called every second with the seconds that are left of it.

    Raises:
        LeaseHeldError: Another process adds partitions.
        OperatorError: Another growth has to be finished first, the number is no multiple, or what the new partitions
            hold was archived already.
        BrokerUnavailableError: Kafka does not answer. Run it again.
        CassandraUnavailableError: Cassandra does not. Run it again.
    """
    session = session_of(settings.cassandra.address)
    with _translated(), leased(session, LEASE, _LEASE_SECONDS) as lease:

        def renewing(left: float) -> None:
            lease.renew()
            waiting(left)

        _grow(settings, partitions, settle, renewing)


@contextmanager
def _translated() -> Iterator[None]:
    """Raise the driver's errors as CassandraUnavailableError."""
    try:
        yield
    except (DriverException, *CASSANDRA_UNAVAILABLE) as error:
        message = f"Cassandra did not answer about partitions: {error}"
        raise CassandraUnavailableError(message, do="galatea doctor, then run the command again") from error


def _grow(settings: "Settings", partitions: int, settle: timedelta, waiting: Callable[[float], None]) -> None:
    session, topics = session_of(settings.cassandra.address), Topics(settings.kafka.connection)
    growths, before = PartitionGrowths(session), partitions_of(settings, topics).open
    if partitions == before:  # a topic that was created since has fewer
        topics.add_partitions(all_topics(), partitions)
        return
    _refuse_archived(session, before)
    growth = growths.begin(before, partitions, topics.ids(registered_sources()), datetime.now(UTC))
    failpoint(Failpoint.PARTITIONS_BEGUN)
    topics.add_partitions(all_topics(), growth.partitions)
    failpoint(Failpoint.PARTITIONS_ADDED)
    settled_at = time.monotonic() + settle.total_seconds()
    while not growth.is_open and (left := settled_at - time.monotonic()) > 0:
        waiting(left)
        time.sleep(min(left, _SHOWN_SECONDS))
    while not growth.is_open:
        waiting(0)
        growth = _opened(settings, growths, growth, topics.ids(registered_sources()))


def _refuse_archived(session: "Session", before: int) -> None:
    """Raise OperatorError if a partition that was not open has been archived: the record of its opening was lost."""
    for topic, own in ArchivePositions(session).read().items():
        if max(own, default=0) >= before:
            message = f"`{topic}/{max(own)}` was archived, but there is no record that it was opened"
            raise OperatorError(message, do="restore the table `partition_growths` from a backup: galatea restore")


def _opened(settings: "Settings", growths: PartitionGrowths, growth: Growth, topic_ids: Mapping[str, str]) -> Growth:
    """Announce when the partitions open, and confirm it while that lies ahead: a cut that misses them is before it."""
    skew = settings.layers.skew
    sent = Markers(settings.kafka.connection).send(registered_sources(), growth.before)
    opens_at = next_opening(datetime.now(UTC), sent.stamps.values(), skew)
    announced = growth._replace(opens_at=opens_at, fences=sent.offsets, topic_ids=topic_ids)
    growths.announce(announced)
    failpoint(Failpoint.PARTITIONS_ANNOUNCED)
    if datetime.now(UTC) < opens_at - skew:
        return growths.confirm(announced)
    return growths.settled(growth)
