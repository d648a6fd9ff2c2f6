"""The speed layer as a process of the local stack: `python -m deploy.process.speed`."""

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Gauge

from deploy.cassandra import session_of
from deploy.process.edge import Process
from deploy.process.lookout import Lookout
from deploy.process.micro_batches import MicroBatches
from deploy.settings import Settings
from deploy.spark import Work, folder_exists, spark_session
from master_dataset.kafka import EARLIEST, Topics, offsets_json
from master_dataset.registry import currencies
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from speed_layer.driver import SpeedDriver
from speed_layer.generation import Generation, Generations, Offsets
from speed_layer.micro_batch import Horizons
from speed_layer.query import Feed, sources_of
from speed_layer.receipts import ReceiptWriter
from views import current_definitions, registered_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP_MB = 640
GENERATION = Gauge("galatea_speed_generation", "The generation that this process writes.")

log = structlog.get_logger()


def run(process: Process, settings: Settings) -> None:
    """Go on with the newest generation, or begin one. CheckpointOutOfStep if its checkpoint is of another time.

    GenerationReplaced, also while nothing arrives, when another generation is to take over: start again.
    """
    connect = partial(session_of, settings.cassandra_address)
    topics = Topics(settings.kafka_bootstrap)
    for source in sources_of(registered_views()):
        topics.check(source.topic, settings.kafka_partitions)
    spark = spark_session(settings, "speed", Work.STREAM, memory_mb=HEAP_MB, partitions=settings.speed_partitions)
    # Other horizons remember other events, so they begin another generation.
    folder = f"{settings.checkpoint_uri}/speed/{settings.oldest_hours}-{settings.remembered_hours}"
    generations = Generations(connect())
    generation = generations.find(generations.greatest())
    if generation is None or not _may_go_on(generation, generations, settings, spark, folder):
        generation = _begin(generations, topics, current_definitions(settings.epoch_seconds))
    offsets = _starting_offsets(settings, generations, topics)
    receipts = {POS_TRANSACTIONS.topic: ReceiptWriter(connect, int(settings.receipts_ttl.total_seconds()))}
    horizons = Horizons(
        epoch=settings.epoch, oldest=settings.oldest, remembered=settings.remembered, ttl=settings.speed_ttl
    )
    records = settings.records_per_batch
    feed = Feed(settings.kafka_bootstrap, offsets, records, partial(currencies, connect), receipts)
    driver = SpeedDriver(connect, registered_views(), horizons)
    query = driver.start(spark, generation, feed, f"{folder}/{generation.number}")
    _look_out(process, settings, generations, generation)
    spark.streams.addListener(MicroBatches("speed"))
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


def _may_go_on(
    generation: Generation, generations: Generations, settings: Settings, spark: "SparkSession", folder: str
) -> bool:
    """Whether its checkpoint is there, its definitions are those of now, and no other is to take over."""
    started = folder_exists(spark, f"{folder}/{generation.number}/offsets")
    same = dict(generation.definitions) == current_definitions(settings.epoch_seconds)
    return started and same and not generations.claims.is_replaced(generation.number)


def _look_out(process: Process, settings: Settings, generations: Generations, generation: Generation) -> None:
    topics = [source.topic for source in sources_of(registered_views())]
    lookout = Lookout("speed", topics, lambda: generations.positions(generation.number), settings.kafka_bootstrap)
    lookout.start(session_of(settings.cassandra_address))
    GENERATION.set(generation.number)
    process.show_metrics(settings.speed_metrics_port)


def _begin(generations: Generations, topics: Topics, current: dict[str, str]) -> Generation:
    pointer = generations.pointer()
    now = datetime.now(UTC)
    topic_names = [source.topic for source in sources_of(registered_views())]
    targets: Offsets = generations.positions(pointer.generation)
    ends = {topic: topics.end_offsets(topic) for topic in topic_names}
    if pointer.generation == 0:
        targets = ends
    # Never a number that was used before, also if Cassandra was lost and a checkpoint of that number is still there.
    number = max(generations.greatest() + 1, int(now.timestamp()))
    generation = Generation(number, pointer.cut, current, targets)
    generations.begin(generation, now)
    log.info("speed.generation_begun", generation=generation.number, emit_from=str(pointer.cut))
    return generation


def _starting_offsets(settings: Settings, generations: Generations, topics: Topics) -> dict[str, str]:
    """Where a query without a checkpoint starts: D before the published cut, or at the first record there is."""
    pointer = generations.pointer()
    since_ms = int((pointer.cut - settings.remembered).timestamp() * 1000)
    found = {}
    for source in sources_of(registered_views()):
        if pointer.publication:
            offsets = topics.offsets_since(source.topic, since_ms)
        else:
            offsets = dict.fromkeys(topics.partitions(source.topic), EARLIEST)
        found[source.topic] = offsets_json({source.topic: offsets})
    return found


if __name__ == "__main__":
    Process("speed").main(run)
