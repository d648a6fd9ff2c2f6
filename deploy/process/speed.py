"""The speed layer as a process of the local stack: `python -m deploy.process.speed`."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from batch_layer.fence import Markers
from deploy.cassandra import session_of
from deploy.process.edge import Process
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
from views.core.publication import Pointer

HEAP_MB = 640

log = structlog.get_logger()


def run(process: Process, settings: Settings) -> None:
    """Go on with the newest generation, or begin one. CheckpointOutOfStep if its checkpoint is of another time."""
    connect = partial(session_of, settings.cassandra_address)
    topics = Topics(settings.kafka_bootstrap)
    for source in sources_of(registered_views()):
        topics.check(source.topic, settings.kafka_partitions)
    spark = spark_session(settings, "speed", Work.STREAM, memory_mb=HEAP_MB, partitions=settings.speed_partitions)
    # Other horizons remember other events, so they begin another generation.
    folder = f"{settings.checkpoint_uri}/speed/{settings.oldest_hours}-{settings.remembered_hours}"
    generations = Generations(connect())
    generation = generations.find(generations.greatest())
    current = current_definitions(settings.epoch_seconds)
    started = generation is not None and folder_exists(spark, f"{folder}/{generation.number}/offsets")
    if generation is None or not started or dict(generation.definitions) != current:
        markers = Markers(settings.kafka_bootstrap).send(source.topic for source in sources_of(registered_views()))
        generation = begin(generations, markers.offsets, current, datetime.now(UTC))
    offsets = {
        topic: offsets_json({topic: own})
        for topic, own in starting_offsets(generations.pointer(), topics, settings.remembered).items()
    }
    receipts = {POS_TRANSACTIONS.topic: ReceiptWriter(connect, int(settings.receipts_ttl.total_seconds()))}
    horizons = Horizons(
        epoch=settings.epoch, oldest=settings.oldest, remembered=settings.remembered, ttl=settings.speed_ttl
    )
    records = settings.records_per_batch
    feed = Feed(settings.kafka_bootstrap, offsets, records, partial(currencies, connect), receipts)
    driver = SpeedDriver(connect, registered_views(), horizons)
    query = driver.start(spark, generation, feed, f"{folder}/{generation.number}")
    process.ready()
    shown = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress.batchId != shown:
            shown = progress.batchId
            log.info("speed.batch", batch=shown, rows=progress.numInputRows, **progress.durationMs)
        time.sleep(1)
    if driver.refusal:
        raise driver.refusal
    query.awaitTermination()


def begin(generations: Generations, marked: Offsets, current: Mapping[str, str], now: datetime) -> Generation:
    """Write down another generation: it takes over when it has read these markers, written after the old one ended.

    Not when it has reached the old one's positions: rows of a micro-batch that was cut short lie behind them, and
    readers have seen these. Nor the ends of the topics: where a transaction ended lies a record that nobody is given.
    """
    pointer = generations.pointer()
    targets = {topic: {partition: at + 1 for partition, at in own.items()} for topic, own in marked.items()}
    # Never a number that was used before, also if Cassandra was lost and a checkpoint of that number is still there.
    number = max(generations.greatest() + 1, int(now.timestamp()))
    generation = Generation(number, pointer.cut, current, targets)
    generations.begin(generation, now)
    log.info("speed.generation_begun", generation=generation.number, emit_from=str(pointer.cut))
    return generation


def starting_offsets(pointer: Pointer, topics: Topics, remembered: timedelta) -> Offsets:
    """Where a query without a checkpoint starts: D before the published cut, or at the first record there is."""
    since_ms = int((pointer.cut - remembered).timestamp() * 1000)
    return {
        source.topic: topics.offsets_since(source.topic, since_ms)
        if pointer.publication
        else dict.fromkeys(topics.partitions(source.topic), EARLIEST)
        for source in sources_of(registered_views())
    }


if __name__ == "__main__":
    Process("speed").main(run)
