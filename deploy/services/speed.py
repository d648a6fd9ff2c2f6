"""The speed layer as a process of the local stack: `python -m deploy.services.speed`."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Gauge

from deploy.cassandra import session_of
from deploy.process import SOON, give_way
from deploy.services.lag_monitor import Lookout
from deploy.services.runner import Process
from deploy.settings import Settings
from deploy.spark import Work, exists, spark_session
from master_dataset.delta.checkpoint import drop_incomplete
from master_dataset.kafka.topics import EARLIEST, Topics, offsets_json
from master_dataset.registry.registry import store_terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from speed_layer.driver import SpeedDriver
from speed_layer.micro_batch import Horizons
from speed_layer.parser import sources_of
from speed_layer.receipts import ReceiptWriter
from speed_layer.stream import Feed
from views import registered_views
from views.control.generation import Generation, Generations, Offsets
from views.core.cut import BEGINNING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP_MB = 640
GENERATION = Gauge("galatea_speed_generation", "The generation that this process writes.")

log = structlog.get_logger()


def run(process: Process, settings: Settings) -> None:
    """Go on with the newest generation, or begin one. CheckpointOutOfStepError if its checkpoint is of another time.

    GenerationReplacedError, also while nothing arrives, when another generation is to take over: start again.
    """
    give_way(SOON)
    connect = partial(session_of, settings.cassandra.address)
    topics = Topics(settings.kafka.bootstrap)
    for source in sources_of(registered_views()):
        topics.check(source.topic, settings.kafka.partitions)
    spark = spark_session(settings, "speed", Work.STREAM, memory_mb=HEAP_MB, partitions=settings.speed.partitions)
    # Other horizons remember other events, or rows live for another time: they begin another generation.
    horizon = f"{settings.speed.oldest_hours}-{settings.speed.remembered_hours}-{settings.speed.ttl_days}"
    folder = f"{settings.paths.checkpoint_uri}/speed/{horizon}"
    generations = Generations(connect())
    generation = generations.find(generations.greatest())
    if generation is None or not may_go_on(generation, generations, settings, spark, folder):
        ends = {source.topic: topics.end_offsets(source.topic) for source in sources_of(registered_views())}
        generation = begin(generations, ends, settings.definitions, datetime.now(UTC))
    feed = _feed(settings, generation, topics)
    horizons = Horizons(
        epoch=settings.layers.epoch,
        oldest=settings.speed.oldest,
        remembered=settings.speed.remembered,
        ttl=settings.speed.ttl,
        visits=settings.layers.visits,
        skew=settings.layers.skew,
    )
    driver = SpeedDriver(connect, registered_views(), horizons)
    query = driver.start(spark, generation, feed, f"{folder}/{generation.number}")
    _look_out(process, settings, generations, generation)
    process.ready()
    shown = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress.batchId != shown:
            shown = progress.batchId
            log.info("speed.batch", batch=shown, rows=progress.numInputRows, **progress.durationMs)
        generations.claims.refuse_replaced(generation.number)
        time.sleep(1)
    if driver.refusal:
        raise driver.refusal
    query.awaitTermination()


def _feed(settings: Settings, generation: Generation, topics: Topics) -> Feed:
    give_way(SOON)
    connect = partial(session_of, settings.cassandra.address)
    offsets = starting_offsets(generation.emit_from, topics, settings.speed.remembered)
    receipts = {POS_TRANSACTIONS.topic: ReceiptWriter(connect, int(settings.speed.receipts_ttl.total_seconds()))}
    return Feed(
        settings.kafka.bootstrap,
        offsets_json(offsets),
        settings.layers.records_per_batch,
        partial(store_terms, connect),
        topics.offsets_since,
        receipts,
    )


def may_go_on(
    generation: Generation, generations: Generations, settings: Settings, spark: "SparkSession", folder: str
) -> bool:
    """Whether its checkpoint is there, its definitions are those of now, and no other is to take over.

    If a checkpoint was removed under a running query, that query may have begun to write another one without its
    beginning, `metadata`, with which Spark would never start again.
    """
    checkpoint = f"{folder}/{generation.number}"
    drop_incomplete(checkpoint)
    started = exists(spark, f"{checkpoint}/offsets") and exists(spark, f"{checkpoint}/metadata")
    same = dict(generation.definitions) == settings.definitions
    return started and same and not generations.claims.is_replaced(generation.number)


def _look_out(process: Process, settings: Settings, generations: Generations, generation: Generation) -> None:
    topics = [source.topic for source in sources_of(registered_views())]
    lookout = Lookout("speed", topics, lambda: generations.positions(generation.number), settings.kafka.bootstrap)
    lookout.start(session_of(settings.cassandra.address))
    GENERATION.set(generation.number)
    process.show_metrics(settings.speed.metrics_port)


def begin(generations: Generations, ends: Offsets, current: Mapping[str, str], now: datetime) -> Generation:
    """Write down another generation. `ends`: of the topics now, which it has to read if there is no other before it.

    It writes rows from the published cut on, or from an older one that a rollback wants.
    """
    pointer = generations.pointer()
    emit_from = min(pointer.cut, generations.claims.wanted_from(generations.greatest()) or pointer.cut)
    # Never a number that was used before, also if Cassandra was lost and a checkpoint of that number is still there.
    number = max(generations.greatest() + 1, pointer.generation + 1, int(now.timestamp()))
    generation = Generation(number, emit_from, current, ends)
    generations.begin(generation, now)
    log.info("speed.generation_begun", generation=generation.number, emit_from=str(emit_from))
    return generation


def starting_offsets(emit_from: datetime, topics: Topics, remembered: timedelta) -> Offsets:
    """Where a query without a checkpoint starts: D before it has to write, or at the first record there is."""
    since_ms = int((emit_from - remembered).timestamp() * 1000)
    return {
        source.topic: topics.offsets_since(source.topic, since_ms)
        if emit_from > BEGINNING
        else dict.fromkeys(topics.partitions(source.topic), EARLIEST)
        for source in sources_of(registered_views())
    }


if __name__ == "__main__":
    Process("speed").main(run)
