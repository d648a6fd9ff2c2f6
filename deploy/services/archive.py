"""The archive as a process of the local stack: `python -m deploy.services.archive`."""

from functools import partial

from deploy.cassandra import session_of
from deploy.priority import LATER, give_way
from deploy.services.archive_watch import ArchiveWatch
from deploy.services.lag_monitor import Lookout
from deploy.services.runner import Process
from deploy.settings import Settings
from deploy.spark import Work, spark_session
from master_dataset.alarm_table import AlarmTable
from master_dataset.archive.archive import Archive, Pace
from master_dataset.archive.positions import ArchivePositions
from master_dataset.dead_letters.replay_table import ReplayTable
from master_dataset.delta.tables import MasterTables
from master_dataset.kafka.topics import Topics
from master_dataset.registry.registry import store_terms
from master_dataset.sources import registered_sources
from views.control.pointer_row import PointerRow

HEAP_MB = 512


def run(process: Process, settings: Settings) -> None:
    """Archive every registered source until the process is told to stop."""
    give_way(LATER)
    connect = partial(session_of, settings.cassandra_address)
    topics = Topics(settings.kafka_bootstrap)
    for topic in registered_sources():
        topics.check(topic, settings.kafka_partitions)
    spark = spark_session(settings, "archive", Work.STREAM, memory_mb=HEAP_MB, partitions=max(2, settings.spark_cores))
    positions, pointer = ArchivePositions(connect()), PointerRow(connect())
    watch = ArchiveWatch(AlarmTable(connect()).notice, lambda: pointer.read().cut, settings.skew)
    watch.refresh()  # the first micro-batch is looked at, too
    ReplayTable(settings.master_uri).create()
    archive = Archive(spark, MasterTables(settings.master_uri), positions, partial(store_terms, connect), watch)
    pace = Pace(settings.archive_seconds, settings.records_per_batch)
    checkpoints = {
        source: f"{settings.checkpoint_uri}/archive/{topic}" for topic, source in registered_sources().items()
    }
    archive.take_back_torn(checkpoints)
    for source, checkpoint in checkpoints.items():
        archive.start(source, settings.kafka_bootstrap, checkpoint, pace)
    lookout = Lookout("archive", list(registered_sources()), positions.read, settings.kafka_bootstrap)
    lookout.start(connect(), also=watch.refresh)
    process.show_metrics(settings.archive_metrics_port)
    process.ready()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    Process("archive").main(run)
