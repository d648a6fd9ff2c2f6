"""How fast receipts get in: acknowledged by the broker, and from there into the master dataset."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from deltalake import DeltaTable

from benchmarks import bare, local, traffic
from benchmarks.report import Measured
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.kafka.ingest import ingest
from master_dataset.kafka.topics import Topics
from master_dataset.parsing.parse import key_of, parse
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.settings import Settings

ROUNDS = 3
DAYS = 10
SETTLED_SECONDS = 0.2
"""A micro-batch records the positions of its partitions one after the other."""


def ingested(settings: "Settings", lines: list[bytes]) -> Measured:
    """`master_dataset.kafka.ingest` beside a loop that only produces; in turns, the best of each counts."""
    local.new_topic(settings, bare.TOPIC)
    key = key_of(POS_TRANSACTIONS)
    keyed = [(key(each) or b"", each) for each in lines]
    share = len(lines) // ROUNDS
    ours, beside = [], []
    for number in range(ROUNDS):
        part = slice(number * share, (number + 1) * share)
        done = ingest(POS_TRANSACTIONS, lines[part], settings.kafka.connection, lambda _result: None)
        ours.append(done.acknowledged / done.seconds)
        beside.append(bare.produce(settings.kafka.connection, keyed[part]))
    details = {"receipts": share * ROUNDS, "bytes_per_receipt": sum(map(len, lines)) // len(lines)}
    return Measured("ingest", max(ours), max(beside), "receipts/s", "bare produce loop", details=details)


def archived(settings: "Settings", lines: list[bytes]) -> Measured:
    """Kafka to Delta, from the first micro-batch on, beside parsing alone in one process."""
    positions = ArchivePositions(local.cassandra(settings))
    ends = Topics(settings.kafka.connection).end_offsets(POS_TRANSACTIONS.topic)

    def reached() -> int:
        found: Mapping[int, int] = positions.read().get(POS_TRANSACTIONS.topic, {})
        return sum(found.values())

    began = time.monotonic()
    local.until(lambda: reached() > 0, "the archive's first micro-batch", every=0.02)
    time.sleep(SETTLED_SECONDS)
    first, first_at = reached(), time.monotonic()
    local.until(lambda: reached() >= sum(ends.values()), "the archive", every=0.02)
    last_at = time.monotonic()
    total = sum(ends.values())
    rate = (total - first) / (last_at - first_at) if total > first else total / (last_at - began)
    details = {"receipts": total, "in_the_first_batch": first, "seconds_with_start": round(last_at - began, 1)}
    return Measured("archive", rate, _parsing(lines), "receipts/s", "parsing, one process", details=details)


def stored(settings: "Settings", lines: list[bytes]) -> Measured:
    """Bytes of the master's files per byte of raw JSON that was sent."""
    path = Path(settings.paths.master_uri) / POS_TRANSACTIONS.topic
    files = DeltaTable(str(path)).file_uris()
    kept = sum(Path(file).stat().st_size for file in files)
    raw = sum(map(len, lines))
    columns = [pq.ParquetFile(file).metadata.row_group(n) for file in files for n in range(_groups(file))]
    value = sum(
        group.column(at).total_compressed_size
        for group in columns
        for at in range(group.num_columns)
        if group.column(at).path_in_schema == "value"
    )
    details = {"files": len(files), "of_which_raw_value": round(value / kept, 3), "raw_bytes": raw}
    return Measured("bytes of the master", kept, raw, "bytes", "raw JSON", better="low", details=details)


def _groups(file: str) -> int:
    return int(pq.ParquetFile(file).metadata.num_row_groups)


def _parsing(lines: list[bytes]) -> float:
    some = lines[:50_000]
    best = 0.0
    for _ in range(2):
        began = time.monotonic()
        for each in some:
            parse(POS_TRANSACTIONS, each, lambda _store: DEFAULT_TERMS)
        best = max(best, len(some) / (time.monotonic() - began))
    return best


def history(size: int) -> list[bytes]:
    """The receipts that are sent."""
    return traffic.receipt_history(size, DAYS)
