"""The speed layer as a process of the local stack: `python -m deploy.process.speed`."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from deploy.cassandra import session_of
from deploy.process.edge import Process
from deploy.settings import Settings
from deploy.spark import Work, folder_exists, remove_folder, spark_session
from master_dataset.errors import RowsDroppedLate
from master_dataset.kafka import EARLIEST, Topics, offsets_json
from master_dataset.registry import currencies
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from speed_layer.driver import SpeedDriver, rows_dropped_late
from speed_layer.generation import Generation, Generations, Offsets
from speed_layer.query import Feed, Horizons, sources_of
from speed_layer.receipts import ReceiptWriter
from views import current_definitions, registered_views

HEAP_MB = 640
SLACK = timedelta(hours=1)
"""What R8 adds to a generation's watermark delay beside A, F and its backlog."""

log = structlog.get_logger()


def run(process: Process, settings: Settings) -> None:
    """Go on with the newest generation, or begin one; end it when it is condemned (R8)."""
    connect = partial(session_of, settings.cassandra_address)
    topics = Topics(settings.kafka_bootstrap)
    for source in sources_of(registered_views()):
        topics.check(source.topic, settings.kafka_partitions)
    spark = spark_session(settings, "speed", Work.STREAM, memory_mb=HEAP_MB, partitions=settings.speed_partitions)
    folder = f"{settings.checkpoint_uri}/speed/{settings.speed_partitions}"  # state is laid out by their number
    generations = Generations(connect())
    generation = generations.find(generations.greatest())
    current = current_definitions(settings.epoch_seconds)
    started = generation is not None and folder_exists(spark, f"{folder}/{generation.number}/offsets")
    if generation is None or not started or dict(generation.definitions) != current:
        generation = _begin(settings, generations, topics, current)
    offsets = _starting_offsets(settings, generations, topics)
    records = settings.records_per_batch
    receipts = {POS_TRANSACTIONS.topic: ReceiptWriter(connect, int(settings.receipts_ttl.total_seconds()))}
    feed = Feed(settings.kafka_bootstrap, offsets, records, partial(currencies, connect), receipts)
    horizons = Horizons(settings.epoch, settings.oldest, generation.delay)
    driver = SpeedDriver(connect, registered_views(), settings.speed_ttl)
    checkpoint = f"{folder}/{generation.number}"
    query = driver.start(spark, generation, feed, horizons, checkpoint)
    process.ready()
    shown = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress.batchId != shown:
            shown = progress.batchId
            log.info("speed.batch", batch=shown, rows=progress.numInputRows, **progress.durationMs)
        if rows_dropped_late(query):
            query.stop()
            remove_folder(spark, checkpoint)
            message = f"generation {generation.number} lost rows behind its watermark and is condemned"
            raise RowsDroppedLate(message, do="nothing: a new generation is built")
        time.sleep(1)
    query.awaitTermination()


def _begin(settings: Settings, generations: Generations, topics: Topics, current: dict[str, str]) -> Generation:
    pointer = generations.pointer()
    now = datetime.now(UTC)
    topic_names = [source.topic for source in sources_of(registered_views())]
    targets: Offsets = generations.positions(pointer.generation)
    ends = {topic: topics.end_offsets(topic) for topic in topic_names}
    if pointer.generation == 0:
        targets = ends
    if pointer.publication:
        backlog = now - (pointer.cut - settings.remembered)
    else:
        backlog = (
            settings.retention if any(offset for own in ends.values() for offset in own.values()) else timedelta(0)
        )
    delay = settings.oldest + settings.furthest_future + backlog + SLACK
    # Never a number that was used before, also if Cassandra was lost and a checkpoint of that number is still there.
    number = max(generations.greatest() + 1, int(now.timestamp()))
    generation = Generation(number, pointer.cut, delay, current, targets)
    generations.begin(generation, now)
    log.info("speed.generation_begun", generation=generation.number, emit_from=str(pointer.cut), delay=str(delay))
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
