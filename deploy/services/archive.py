"""A process of the archive: `python -m deploy.services.archive [NAME]`. NAME: `archive`, `archive-2` and so on."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog
from prometheus_client import Counter

from deploy.backup.mark import refuse_unfinished_restore
from deploy.cassandra import session_of
from deploy.partitions import checked_partitions, refuse_opened
from deploy.process import BACKGROUND_NICENESS, lower_priority
from deploy.services.lag_monitor import LagMonitor
from deploy.services.runner import Process
from deploy.services.shared_work import REHEARSED, SharedWork
from deploy.settings import Settings
from deploy.spark import Work, spark_session
from master_dataset.archive.archive import Archive, Topic, Trigger
from master_dataset.cassandra_tables import (
    CASSANDRA_UNAVAILABLE,
    CLOCK_STEPPED_BACK,
    AlarmTable,
    ArchivePositions,
    LeaseTable,
)
from master_dataset.dead_letters.replay_history import ReplayTable
from master_dataset.delta.tables import MasterTables
from master_dataset.kafka.growth import PartitionGrowths
from master_dataset.kafka.partition_progress import Progress, steps_back
from master_dataset.kafka.topics import Topics, offsets_json
from master_dataset.registry.registry import store_terms
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.storage import probe
from views.control.publication import PointerRow
from views.core.cut import UNIX_EPOCH

if TYPE_CHECKING:
    from master_dataset.archive.archive import ArchiveMonitor
    from master_dataset.source import Source

RECEIVED = Counter("galatea_received", "Records read from the topic, without transaction markers.", ("topic",))
EVENTS = Counter("galatea_events", "Events archived, including duplicates.", ("topic",))
DEAD_LETTERS = Counter("galatea_dead_letters", "Records archived as dead letters.", ("topic", "reason"))

_LOOK_SECONDS = 0.5
"""How often the archive looks for topics that it is to take or to give up, and for partitions that were opened."""
log = structlog.get_logger()


class ArchiveWatch:
    """Counts what the archive keeps, and raises an alarm when the broker's clock steps back."""

    def __init__(
        self,
        notice: Callable[[str, datetime, str, str], None],
        cut_now: Callable[[], datetime],
        skew: timedelta,
    ) -> None:
        """Create it without a cut.

        Args:
            notice: Stores an alarm: its name, time, place, and a sentence.
            cut_now: Reads the published cut. Only `refresh` calls it, so that no micro-batch waits for it.
            skew: How far clocks may differ.
        """
        self._notice, self._cut_now, self._skew = notice, cut_now, skew
        self._cut = UNIX_EPOCH
        self._newest: dict[str, dict[int, datetime]] = {}

    def refresh(self) -> None:
        """Read the published cut."""
        self._cut = self._cut_now()

    def on_batch(self, topic: str, progress: Progress, *, repeats: bool) -> None:
        """Count a micro-batch and compare its timestamps. A repeated one may be older than the published cut."""
        newest = self._newest.setdefault(topic, {})
        for partition, sentence in steps_back(progress, newest, UNIX_EPOCH if repeats else self._cut, self._skew):
            place = f"{topic}/{partition}"
            log.error("alarm.clock_stepped_back", place=place, detail=sentence)
            self._notice(CLOCK_STEPPED_BACK, datetime.now(UTC), place, sentence)
        for partition, each in progress.items():
            newest[partition] = max(newest.get(partition, each.received_at), each.received_at)
            RECEIVED.labels(topic).inc(each.received)
            EVENTS.labels(topic).inc(each.events)
            for reason, number in each.dead_letters.items():
                DEAD_LETTERS.labels(topic, reason).inc(number)


def run(process: Process, settings: Settings) -> None:
    """Archive registered sources, those that other processes do not, until the process is stopped."""
    lower_priority(BACKGROUND_NICENESS)
    connect = partial(session_of, settings.cassandra.address)
    refuse_unfinished_restore(connect())
    for setting, uri in settings.paths.remote.items():
        probe(uri, setting)
    topics = Topics(settings.kafka.connection)
    partitions = checked_partitions(settings, topics, registered_sources())
    partitions_of_spark = max(2, settings.spark.cores)
    spark = spark_session(
        settings, "archive", Work.STREAM, memory_mb=settings.archive.heap_mb, partitions=partitions_of_spark
    )
    positions, pointer = ArchivePositions(connect()), PointerRow(connect())
    growths, topic_ids = PartitionGrowths(connect()), topics.ids(registered_sources())
    watch = ArchiveWatch(AlarmTable(connect()).notice, lambda: pointer.read().cut, settings.layers.skew)
    watch.refresh()  # the first micro-batch is checked too
    ReplayTable(settings.paths.master_uri).create()
    monitor = monitor_of(process, settings, watch, list(registered_sources().values()))
    archive = Archive(spark, MasterTables(settings.paths.master_uri), positions, partial(store_terms, connect), monitor)
    trigger = Trigger(settings.archive.seconds, settings.layers.records_per_batch)
    folders = {
        source: f"{settings.paths.checkpoint_uri}/archive/{topic}" for topic, source in registered_sources().items()
    }
    lag = LagMonitor("archive", list(registered_sources()), positions.read, settings.kafka.connection)
    lag.start(connect(), also=watch.refresh)
    process.show_metrics(settings.archive.metrics_port_of(process.name))
    work = SharedWork(LeaseTable(connect()), "archive", list(registered_sources()), str(uuid4()))
    process.at_end(work.leave)
    work.join(lambda: archive.roll_back_incomplete(folders))
    location = Topic(settings.kafka.connection, partitions)
    has_rehearsed = False
    while True:
        try:
            for topic in work.beyond_share():
                archive.stop(topic)
                work.release(topic)
            for topic in archive.topics - work.held:  # another process has taken them
                archive.stop(topic)
            work.take()
            for topic in filter(work.confirm, sorted(work.held - archive.topics)):
                source = registered_sources()[topic]
                archive.start(source, location, folders[source], trigger)
            refuse_opened(growths.read(partitions.original, topic_ids).open, partitions.open)
        except CASSANDRA_UNAVAILABLE as error:  # archiving continues
            log.warning("archive.cassandra_unavailable", error=str(error))
        archive.check()
        process.ready()
        if not has_rehearsed and len(work.held) < len(folders):  # other processes archive what this one may take over
            last = partitions.opened(topics.last_offsets(POS_TRANSACTIONS.topic, REHEARSED))
            archive.rehearse(POS_TRANSACTIONS, location, offsets_json({POS_TRANSACTIONS.topic: last}))
            has_rehearsed = True
        time.sleep(_LOOK_SECONDS)


def monitor_of(
    process: Process, settings: Settings, watch: ArchiveWatch, sources: "Sequence[Source[Any]]"
) -> "ArchiveMonitor":
    """Return what the archive notifies: the watch, and lineage if it is on. OperatorError as `Lineage.of`."""
    if not settings.lineage.config_file:
        return watch
    from deploy.telemetry.jobs import ArchiveLineage, ArchiveMonitors  # noqa: PLC0415 - only if it is on
    from deploy.telemetry.lineage import Lineage  # noqa: PLC0415 - needs an extra of the package

    lineage = ArchiveLineage(settings, Lineage.of(settings), sources)
    process.at_end(lambda: lineage.end(has_failed=process.has_failed))
    return ArchiveMonitors(watch, lineage)


if __name__ == "__main__":
    Process(*(sys.argv[1:] or ["archive"])).main(run)
