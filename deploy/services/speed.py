"""A process of the speed layer: `python -m deploy.services.speed [NAME]`. NAME: `speed`, `speed-2` and so on."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog
from prometheus_client import Gauge
from pyspark.sql.streaming.query import StreamingQuery

from deploy.backup.mark import refuse_unfinished_restore
from deploy.cassandra import session_of
from deploy.partitions import checked_partitions, refuse_opened
from deploy.process import STREAMING_NICENESS, lower_priority
from deploy.services.lag_monitor import LagMonitor
from deploy.services.releases import read_layouts
from deploy.services.runner import Process
from deploy.services.shared_work import REHEARSED, SharedWork
from deploy.settings import Settings
from deploy.spark import Work, on_cluster, spark_session
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE, LeaseTable
from master_dataset.delta.checkpoint import adopt, checkpoints_in, drop_incomplete, furthest
from master_dataset.errors import CheckpointOutOfStepError, ProcessReplacedError
from master_dataset.kafka.growth import PartitionGrowths, Partitions
from master_dataset.kafka.topics import EARLIEST, Topics, offsets_json
from master_dataset.registry.registry import Registry, store_tenants, store_terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.storage import exists, probe
from speed_layer.driver import SpeedDriver
from speed_layer.micro_batch import Horizons
from speed_layer.parser import sources_of
from speed_layer.receipts import ReceiptBlockWriter, ReceiptWriter
from speed_layer.stream import Feed
from speed_layer.titles import TitleWriter
from views import registered_views
from views.control.generation import Generation, Generations, Offsets
from views.control.speed_layout import BY_VIEW, SpeedLayout
from views.core.cut import UNIX_EPOCH

if TYPE_CHECKING:
    from cassandra.cluster import Session

HEAP_MB = 640
GENERATION = Gauge("galatea_speed_generation", "The generation that this process writes.")

_STREAM = "stream"
"""The work of the speed layer, which only one process does at a time; executors can share it."""
_LOOK_SECONDS = 0.5
_MOST_ENDED = 3
"""How often in a row, without a micro-batch in between, another process may be ahead before an operator has to act."""
_TAKEN_OVER = "another process of the speed layer has taken over, because this one did not renew its lease"
_STAND_BY = "nothing: this process starts again, and stands by"

log = structlog.get_logger()


def run(process: Process, settings: Settings) -> None:
    """Stand by until no other process streams; then resume the newest generation, or begin one, until stopped.

    Raises:
        CheckpointOutOfStepError: The checkpoint of the generation does not match what it has recorded.
        PartitionsOpenedError: Partitions were added that this query does not read: restart the process.
        GenerationReplacedError: Another generation takes over, even if no record arrives: restart the process.
        ProcessReplacedError: Another process has taken over: restart the process, so that it stands by.
    """
    lower_priority(STREAMING_NICENESS)
    connect = partial(session_of, settings.cassandra.address)
    refuse_unfinished_restore(connect())
    probe(settings.paths.checkpoint_uri, "GALATEA_CHECKPOINT_URI")
    topics = Topics(settings.kafka.connection)
    names = [source.topic for source in sources_of(registered_views())]
    partitions = checked_partitions(settings, topics, names)
    spark = spark_session(settings, "speed", Work.STREAM, memory_mb=HEAP_MB, partitions=settings.speed.partitions)
    process.show_metrics(settings.speed.metrics_port_of(process.name))
    work = SharedWork(LeaseTable(connect()), "speed", [_STREAM], str(uuid4()))
    process.at_end(work.leave)
    work.join()
    horizons = Horizons(
        epoch=settings.layers.epoch,
        oldest=settings.speed.oldest,
        remembered=settings.speed.remembered,
        ttl=settings.speed.ttl,
        visits=settings.layers.visits,
        skew=settings.layers.skew,
    )
    driver = SpeedDriver(connect, registered_views(), horizons, has_executors=on_cluster(settings))
    process.at_end(driver.remove_files)

    def stand_by() -> None:
        process.ready()
        driver.rehearse(spark, _rehearsal(settings, partitions, names))

    growths, topic_ids = PartitionGrowths(connect()), topics.ids(names)

    def refuse_growths() -> None:
        refuse_opened(growths.read(partitions.original, topic_ids).open, partitions.open)

    _await_turn(work, stand_by, refuse_growths)
    # With other horizons the layer remembers other events: they need another generation.
    folder = (
        f"{settings.paths.checkpoint_uri}/speed/"
        f"{settings.speed.oldest_hours}-{settings.speed.remembered_hours}-{settings.speed.ttl_days}"
    )
    generations = Generations(connect())
    generation = _generation(settings, generations, folder, partitions, topic_ids)
    feed = _feed(settings, generation, partitions, generations.positions(generation.number))
    _start_monitor(settings, generations, generation)

    def check() -> None:
        if _STREAM not in work.held:
            raise ProcessReplacedError(_TAKEN_OVER, do=_STAND_BY)
        generations.claims.refuse_replaced(generation.number)
        opened, positions = growths.read(partitions.original, topic_ids), generations.positions(generation.number)
        refuse_opened(opened.readable(positions, names), feed.readable)

    ended_by_others = 0
    while True:
        if not work.confirm(_STREAM):
            raise ProcessReplacedError(_TAKEN_OVER, do=_STAND_BY)
        own = f"{folder}/{generation.number}"
        checkpoint = adopt(own, furthest(own, generations.claims.claimed(generation.number)))
        query = driver.start(spark, generation, feed, checkpoint)
        process.ready()
        _watch(query, check)
        ended_by_others = 1 if query.lastProgress else ended_by_others + 1
        if not isinstance(driver.refusal, CheckpointOutOfStepError) or ended_by_others > _MOST_ENDED:
            break
        log.warning("speed.out_of_step", do="nothing: this process goes on behind one that was suspended")
    if driver.refusal:
        raise driver.refusal
    query.awaitTermination()


def _watch(query: StreamingQuery, check: Callable[[], None]) -> None:
    """Log each micro-batch, and check every second, until the query has ended."""
    logged = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress.batchId != logged:
            logged = progress.batchId
            log.info("speed.batch", batch=logged, rows=progress.numInputRows, **progress.durationMs)
        check()
        time.sleep(1)


def _await_turn(work: SharedWork, stand_by: Callable[[], None], check: Callable[[], None]) -> None:
    """Return when no other process streams.

    Args:
        work: That of the speed layer.
        stand_by: Is called if another process streams at first.
        check: Is called again and again meanwhile, and raises if this process has to start again.
    """
    work.take()
    if _STREAM not in work.held:
        stand_by()
        log.info("speed.stands_by")
    while _STREAM not in work.held:
        time.sleep(_LOOK_SECONDS)
        try:
            check()
            work.take()
        except CASSANDRA_UNAVAILABLE as error:
            log.warning("speed.cassandra_unavailable", error=str(error))


def _feed(settings: Settings, generation: Generation, partitions: Partitions, positions: Offsets) -> Feed:
    topics = Topics(settings.kafka.connection)
    connect = partial(session_of, settings.cassandra.address)
    starts = starting_offsets(generation.emit_from, topics, settings.speed.remembered, partitions)
    readable = partitions.readable(positions or starts, starts)
    offsets = {topic: {number: own[number] for number in range(readable)} for topic, own in starts.items()}
    written = ReceiptBlockWriter if generation.layout.packs_receipts else ReceiptWriter
    receipts = written(connect, int(settings.speed.receipts_ttl.total_seconds()))
    titles = TitleWriter(connect, partial(store_tenants, connect))
    return Feed(
        settings.kafka.connection,
        partitions,
        readable,
        offsets_json(offsets),
        settings.layers.records_per_batch,
        partial(store_terms, connect),
        topics.offsets_since,
        {POS_TRANSACTIONS.topic: (receipts, titles)},
    )


def _generation(
    settings: Settings,
    generations: Generations,
    folder: str,
    partitions: Partitions,
    topic_ids: Mapping[str, str],
) -> Generation:
    """The newest one, if this process can go on with it; else a new one."""
    newest = generations.find(generations.greatest())
    if newest is not None and can_resume(newest, generations, settings, folder):
        generations.name_topics(newest.number, topic_ids)
        return newest
    topics = Topics(settings.kafka.connection)
    ends = {topic: partitions.opened(topics.end_offsets(topic)) for topic in topic_ids}
    layout = layout_to_begin(session_of(settings.cassandra.address), is_first=newest is None)
    return begin(generations, ends, settings.definitions, datetime.now(UTC), topic_ids, layout=layout)


def layout_to_begin(session: "Session", *, is_first: bool) -> SpeedLayout:
    """The layout of a new generation: the newest that every process which runs can read.

    A process of an earlier release that starts later refuses to answer with speed rows, because the pointer names none
    to it. So does one before the first generation of all (`is_first`).
    """
    newest, read = SpeedLayout.for_stores(len(Registry(session).stores())), read_layouts(session)
    if is_first or read.receipt_blocks:
        return newest
    log.info("speed.layout_of_former_release", do="once all processes are of this release: galatea speed restart")
    return replace(newest, packs_receipts=False) if read.by_store else BY_VIEW


def _rehearsal(settings: Settings, partitions: Partitions, names: Sequence[str]) -> Feed:
    """The last records of each partition, which have no side effects."""
    topics = Topics(settings.kafka.connection)
    last = {topic: partitions.opened(topics.last_offsets(topic, REHEARSED)) for topic in names}
    return Feed(
        settings.kafka.connection,
        partitions,
        partitions.open,
        offsets_json(last),
        settings.layers.records_per_batch,
        partial(store_terms, partial(session_of, settings.cassandra.address)),
        topics.offsets_since,
        writers={},
    )


def can_resume(generation: Generation, generations: Generations, settings: Settings, folder: str) -> bool:
    """Whether it has a checkpoint and the current definitions, and no other generation is to take over.

    A query whose checkpoint is removed while it runs may write a new one without `metadata`, which Spark can never
    resume.
    """
    own = f"{folder}/{generation.number}"
    for checkpoint in checkpoints_in(own):
        drop_incomplete(checkpoint)
    started = any(exists(f"{checkpoint}/offsets") for checkpoint in checkpoints_in(own))
    same = dict(generation.definitions) == settings.definitions
    return started and same and not generations.claims.is_replaced(generation.number)


def _start_monitor(settings: Settings, generations: Generations, generation: Generation) -> None:
    topics = [source.topic for source in sources_of(registered_views())]
    monitor = LagMonitor("speed", topics, lambda: generations.positions(generation.number), settings.kafka.connection)
    monitor.start(session_of(settings.cassandra.address))
    GENERATION.set(generation.number)


def begin(  # noqa: PLR0913 - all that a generation is
    generations: Generations,
    ends: Offsets,
    current: Mapping[str, str],
    now: datetime,
    topic_ids: Mapping[str, str],
    *,
    layout: SpeedLayout = BY_VIEW,
) -> Generation:
    """Record a new generation, which writes rows from the published cut on, or from an older one that a rollback needs.

    Args:
        generations: The generations recorded so far.
        ends: End offsets of the topics, which the first generation has to reach before it is served.
        current: Hash of every view's definition.
        now: The time, UTC.
        topic_ids: The ids of the topics.
        layout: Where its rows will lie.
    """
    pointer = generations.pointer()
    emit_from = min(pointer.cut, generations.claims.wanted_from(generations.greatest()) or pointer.cut)
    # Never reuse a number, even if Cassandra was lost: a checkpoint of that number may still exist.
    number = max(generations.greatest() + 1, pointer.generation + 1, int(now.timestamp()))
    generation = Generation(number, emit_from, current, ends, topic_ids, layout)
    generations.begin(generation, now)
    begun = {"generation": generation.number, "emit_from": str(emit_from), "buckets": layout.buckets}
    log.info("speed.generation_begun", **begun)
    return generation


def starting_offsets(emit_from: datetime, topics: Topics, remembered: timedelta, partitions: Partitions) -> Offsets:
    """Return where a query without a checkpoint starts: D before its first row, or at the earliest record.

    Of every partition that is open; which of them it may read follows from these offsets.
    """
    since_ms = int((emit_from - remembered).timestamp() * 1000)
    return {
        source.topic: partitions.start_offsets(topics.offsets_since(source.topic, since_ms), since_ms)
        if emit_from > UNIX_EPOCH
        else dict.fromkeys(range(partitions.open), EARLIEST)
        for source in sources_of(registered_views())
    }


if __name__ == "__main__":
    Process(*(sys.argv[1:] or ["speed"])).main(run)
