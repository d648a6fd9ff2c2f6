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
from master_dataset.errors import CheckpointOutOfStepError, MicroBatchTooLargeError, ProcessReplacedError
from master_dataset.kafka.growth import PartitionGrowths, Partitions
from master_dataset.kafka.topics import EARLIEST, Topics, offsets_json
from master_dataset.registry.registry import Registry, store_tenants, store_terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.storage import exists, probe
from speed_layer.driver import SpeedDriver
from speed_layer.micro_batch import SpeedTimings
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
    from pyspark.sql import SparkSession

GENERATION = Gauge("galatea_speed_generation", "The generation that this process writes.")

_STREAM = "stream"
"""The work of the speed layer, which only one process does at a time; executors can share it."""
_LOOK_SECONDS = 0.5
_MOST_ENDED = 3
"""How often in a row, without a micro-batch in between, another process may be ahead before an operator has to act."""
_FEWER, _FEWEST = 8, 64
"""After a micro-batch that needs too much memory: the divisor of the records per micro-batch, and their minimum."""
_TAKEN_OVER = "another process of the speed layer has taken over, because this one did not renew its lease"
_STAND_BY = "no action needed: this process restarts and stands by"

log = structlog.get_logger()


def run(process: Process, settings: Settings) -> None:
    """Stand by until no other process streams; then resume the newest generation, or begin one, until stopped.

    Raises:
        CheckpointOutOfStepError: The checkpoint of the generation does not match what it has recorded.
        PartitionsOpenedError: Partitions were added that this query does not read: restart the process.
        GenerationReplacedError: Another generation takes over, even if no record arrives: restart the process.
        ProcessReplacedError: Another process has taken over: restart the process, so that it stands by.
        MicroBatchTooLargeError: Even the smallest micro-batches need too much memory.
    """
    lower_priority(STREAMING_NICENESS)
    connect = partial(session_of, settings.cassandra.address)
    refuse_unfinished_restore(connect())
    probe(settings.paths.checkpoint_uri, "GALATEA_CHECKPOINT_URI")
    topics = Topics(settings.kafka.connection)
    names = [source.topic for source in sources_of(registered_views())]
    partitions = checked_partitions(settings, topics, names)
    own = settings.speed
    spark = spark_session(settings, "speed", Work.STREAM, memory_mb=own.heap_mb, partitions=own.partitions)
    process.show_metrics(settings.speed.metrics_port_of(process.name))
    work = SharedWork(LeaseTable(connect()), "speed", [_STREAM], str(uuid4()))
    process.at_end(work.leave)
    work.join()
    timings = SpeedTimings(
        epoch=settings.layers.epoch,
        oldest=settings.speed.oldest,
        remembered=settings.speed.remembered,
        ttl=settings.speed.ttl,
        visits=settings.layers.visits,
        skew=settings.layers.skew,
    )
    driver = SpeedDriver(
        connect,
        registered_views(),
        timings,
        most_bytes=settings.speed.micro_batch_mb * 2**20,
        files=None if on_cluster(settings) else settings.home / "spark" / f"{process.name}-identities",
    )
    process.at_end(driver.remove_files)

    def stand_by() -> None:
        process.ready()
        driver.rehearse(spark, _rehearsal(settings, partitions, names))

    growths, topic_ids = PartitionGrowths(connect()), topics.ids(names)

    def refuse_growths() -> None:
        refuse_opened(growths.read(partitions.original, topic_ids).open, partitions.open)

    _await_takeover(work, stand_by, refuse_growths)
    reading = _Reading(settings, Generations(connect()), partitions, topic_ids)
    _start_monitor(settings, reading)

    def check() -> None:
        if _STREAM not in work.held:
            raise ProcessReplacedError(_TAKEN_OVER, do=_STAND_BY)
        reading.refuse_replaced()
        opened = growths.read(partitions.original, topic_ids)
        refuse_opened(opened.readable(reading.positions(), names), reading.feed.readable)

    def confirm() -> None:
        if not work.confirm(_STREAM):
            raise ProcessReplacedError(_TAKEN_OVER, do=_STAND_BY)

    def start() -> StreamingQuery:
        confirm()
        query = reading.start(spark, driver)
        process.ready()
        return query

    _stream(driver, reading, start, check, confirm)


def _stream(
    driver: SpeedDriver,
    reading: "_Reading",
    start: Callable[[], StreamingQuery],
    check: Callable[[], None],
    confirm: Callable[[], None],
) -> None:
    """Run queries until one ends for a reason that this process cannot deal with, and raise it.

    Args:
        driver: What the queries are of.
        reading: The generation, and how it is read.
        start: Starts a query.
        check: Is called every second, and raises if this process has to start again.
        confirm: Raises if another process has taken over.
    """
    ended_by_others = 0
    while True:
        query = start()
        if _watch(query, check, reading.has_passed):
            reading.resume_full_size()
            continue
        if isinstance(driver.refusal, MicroBatchTooLargeError):
            confirm()  # before a generation begins
            if reading.begin_smaller(driver.size, driver.ends):
                continue
        ended_by_others = 1 if query.lastProgress else ended_by_others + 1
        if not isinstance(driver.refusal, CheckpointOutOfStepError) or ended_by_others > _MOST_ENDED:
            break
        log.warning("speed.out_of_step", ended_by_others=ended_by_others)
    if driver.refusal:
        raise driver.refusal
    query.awaitTermination()


class _Reading:
    """The generation that this process writes, and how it reads the topics."""

    def __init__(
        self, settings: Settings, generations: Generations, partitions: Partitions, topic_ids: Mapping[str, str]
    ) -> None:
        """Resume the newest generation, if this process can go on with it; else begin a new one."""
        self._settings, self._generations = settings, generations
        self._partitions, self._topic_ids = partitions, topic_ids
        # With other timings the layer remembers other events: they need another generation.
        self._folder = (
            f"{settings.paths.checkpoint_uri}/speed/"
            f"{settings.speed.oldest_hours}-{settings.speed.remembered_hours}-{settings.speed.ttl_days}"
        )
        newest = generations.find(generations.greatest())
        if newest is not None and can_resume(newest, generations, settings, self._folder):
            generations.name_topics(newest.number, topic_ids)
            self.generation = newest
        else:
            self.generation = self._new_generation()
        self._small_until: Offsets = {}
        self.feed = self._feed(self._full_size)

    @property
    def _full_size(self) -> int:
        return self._settings.layers.records_per_batch

    def has_passed(self) -> bool:
        """Whether micro-batches are smaller than usual, and what was too large for one has been counted."""
        if not self._small_until:
            return False
        reached = self.positions()
        return all(
            reached.get(topic, {}).get(number, 0) >= end
            for topic, own in self._small_until.items()
            for number, end in own.items()
        )

    def positions(self) -> Offsets:
        """How far the generation has written."""
        return self._generations.positions(self.generation.number)

    def refuse_replaced(self) -> None:
        """GenerationReplacedError if another generation is to take over."""
        self._generations.claims.refuse_replaced(self.generation.number)

    def start(self, spark: "SparkSession", driver: SpeedDriver) -> StreamingQuery:
        """Start or continue the query."""
        GENERATION.set(self.generation.number)
        own = f"{self._folder}/{self.generation.number}"
        checkpoint = adopt(own, furthest(own, self._generations.claims.claimed(self.generation.number)))
        return driver.start(spark, self.generation, self.feed, checkpoint)

    def begin_smaller(self, size: int, ends: Offsets) -> bool:
        """Begin another generation, which reads fewer records at once until it has passed a micro-batch.

        A micro-batch that needs too much memory cannot be divided: where it ends is in the checkpoint, and claimed.

        Args:
            size: Records of the micro-batch that needs too much memory.
            ends: Where it ends.

        Returns:
            False, and nothing changes, if fewer are hardly possible.
        """
        size = min(size, self.feed.per_batch)
        if size <= _FEWEST:
            return False
        records = max(size // _FEWER, _FEWEST)
        log.warning("speed.micro_batch_too_large", next_records=records)
        is_served = self._generations.pointer().generation == self.generation.number
        # A rollback may be waiting for one that begins as early; one that is served has long passed its beginning.
        self.generation = self._new_generation(None if is_served else self.generation.emit_from)
        self._small_until = {
            topic: {number: max(end, self._small_until.get(topic, {}).get(number, 0)) for number, end in own.items()}
            for topic, own in ends.items()
        }
        self.feed = self._feed(records)
        return True

    def resume_full_size(self) -> None:
        """Read as many records at once as usual."""
        self._small_until = {}
        self.feed = replace(self.feed, per_batch=self._full_size)
        log.info("speed.micro_batches_as_usual", records=self._full_size)

    def _new_generation(self, emit_from: datetime | None = None) -> Generation:
        """`emit_from`: as of `begin`."""
        topics = Topics(self._settings.kafka.connection)
        ends = {topic: self._partitions.opened(topics.end_offsets(topic)) for topic in self._topic_ids}
        is_first = not self._generations.greatest()
        layout = layout_to_begin(session_of(self._settings.cassandra.address), is_first=is_first)
        now, definitions = datetime.now(UTC), self._settings.definitions
        return begin(self._generations, ends, definitions, now, self._topic_ids, layout=layout, emit_from=emit_from)

    def _feed(self, records: int) -> Feed:
        """`records`: of a micro-batch, at most."""
        settings, partitions = self._settings, self._partitions
        topics = Topics(settings.kafka.connection)
        connect = partial(session_of, settings.cassandra.address)
        starts = starting_offsets(self.generation.emit_from, topics, settings.speed.remembered, partitions)
        readable = partitions.readable(self.positions() or starts, starts)
        offsets = {topic: {number: own[number] for number in range(readable)} for topic, own in starts.items()}
        written = ReceiptBlockWriter if self.generation.layout.packs_receipts else ReceiptWriter
        receipts = written(connect, int(settings.speed.receipts_ttl.total_seconds()))
        titles = TitleWriter(connect, partial(store_tenants, connect))
        return Feed(
            settings.kafka.connection,
            partitions,
            readable,
            offsets_json(offsets),
            records,
            partial(store_terms, connect),
            topics.offsets_since,
            {POS_TRANSACTIONS.topic: (receipts, titles)},
        )


def _watch(query: StreamingQuery, check: Callable[[], None], has_passed: Callable[[], bool]) -> bool:
    """Log each micro-batch, and check every second, until the query has ended.

    Args:
        query: The query.
        check: Raises if this process has to start again.
        has_passed: Whether to stop the query.

    Returns:
        Whether it was stopped.
    """
    logged = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress.batchId != logged:
            logged = progress.batchId
            log.info("speed.batch", batch=logged, rows=progress.numInputRows, **progress.durationMs)
        check()
        if has_passed():
            query.stop()
            return True
        time.sleep(1)
    return False


def _await_takeover(work: SharedWork, stand_by: Callable[[], None], check: Callable[[], None]) -> None:
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


def _start_monitor(settings: Settings, reading: _Reading) -> None:
    topics = [source.topic for source in sources_of(registered_views())]
    monitor = LagMonitor("speed", topics, reading.positions, settings.kafka.connection)
    monitor.start(session_of(settings.cassandra.address))


def begin(  # noqa: PLR0913 - all that a generation is
    generations: Generations,
    ends: Offsets,
    current: Mapping[str, str],
    now: datetime,
    topic_ids: Mapping[str, str],
    *,
    layout: SpeedLayout = BY_VIEW,
    emit_from: datetime | None = None,
) -> Generation:
    """Record a new generation, which writes rows from the published cut on, or from an older one that a rollback needs.

    Args:
        generations: The generations recorded so far.
        ends: End offsets of the topics, which the first generation has to reach before it is served.
        current: Hash of every view's definition.
        now: The time, UTC.
        topic_ids: The ids of the topics.
        layout: Where its rows will lie.
        emit_from: From where it writes rows at the latest; None: the published cut.
    """
    pointer = generations.pointer()
    wanted = generations.claims.wanted_from(generations.greatest())
    emit_from = min(each for each in (pointer.cut, wanted, emit_from) if each is not None)
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
