"""Whether the broker's clock steps back (R1): behind the stamps before it, or below a published cut.

A step within the skew is allowed for by the fence (R2). A larger one may put a record below a cut that is published
already. Nothing is lost by it: the next rebuild finds the record and counts it. Until then it is missing.

What the workers saw while they parsed a micro-batch: how far it reaches in each partition, and what is in it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam

from master_dataset.parsing.parse import is_marker
from master_dataset.parsing.rows import headers_of

Newest = MutableMapping[int, int]
"""Partition to its newest stamp so far, in microseconds since 1970."""

NO_STEP = timedelta(0)


def steps(parsed: pa.RecordBatch, newest: Newest) -> dict[int, timedelta]:
    """By how much a stamp lies behind the newest before it, at most, per partition. Goes on from `newest`.

    All batches of a task in their order: a partition is read by one task, in the order of its offsets (R3).
    """
    stamps = parsed["received_at"].cast(pa.int64())
    found = {}
    for partition in pc.unique(parsed["partition"]).to_pylist():
        own = stamps.filter(pc.equal(parsed["partition"], partition))
        before = pc.cumulative_max(own, start=newest.get(partition, own[0].as_py()))
        found[partition] = timedelta(microseconds=pc.max(pc.subtract(before, own)).as_py())
        newest[partition] = before[-1].as_py()
    return found


def steps_back(
    progress: "Progress", newest: Mapping[int, datetime], cut: datetime, skew: timedelta
) -> Iterator[tuple[int, str]]:
    """Each partition of a micro-batch in which the clock stepped back, and one sentence about it.

    `newest`: the newest stamp of the micro-batches before. `cut`: one published before this micro-batch was kept; the
    archive had passed its markers then, so nothing that is kept now may be older.
    """
    for partition, each in progress.items():
        step = max(each.step_back, newest.get(partition, each.oldest_at) - each.oldest_at)
        at = f"{each.oldest_at:%F %T} UTC"
        if each.oldest_at < cut:
            yield partition, f"a record is stamped {at}, below the published cut {cut:%F %T} UTC"
        elif step > skew:
            yield partition, f"a stamp near {at} lies {step.total_seconds():.1f} s behind those before it"


@dataclass(frozen=True)
class PartitionProgress:
    """One partition of a micro-batch. `offset`, `received_at`: the greatest; `oldest_at`: the least `received_at`.

    `step_back`: by how much a record was stamped before one that precedes it, at most. `received`: records as they
    came, without markers. It, `events` and `dead_letters` by reason are for metrics only, because what a task says
    twice, repeated or beside its copy, is counted twice. Whether there are any dead letters, and all else, does not
    change by that.
    """

    offset: int
    received_at: datetime
    events: int
    dead_letters: Counter[str]
    oldest_at: datetime
    step_back: timedelta = NO_STEP
    received: int = 0

    def __or__(self, other: "PartitionProgress") -> "PartitionProgress":
        """Both seen."""
        return PartitionProgress(
            max(self.offset, other.offset),
            max(self.received_at, other.received_at),
            self.events + other.events,
            self.dead_letters + other.dead_letters,
            min(self.oldest_at, other.oldest_at),
            max(self.step_back, other.step_back),
            self.received + other.received,
        )


Progress = Mapping[int, PartitionProgress]
"""By partition."""


def count_received(batch: pa.RecordBatch) -> Counter[int]:
    """How many records each partition has in a batch as it comes from Kafka, before any is parsed; no markers."""
    partitions = batch.column("partition")
    if (headers := headers_of(batch)) is None:
        return Counter({each["values"]: each["counts"] for each in partitions.value_counts().to_pylist()})
    return Counter(part for part, each in zip(partitions.to_pylist(), headers, strict=True) if not is_marker(each))


def progress_of(parsed: pa.RecordBatch, newest: Newest, came: Mapping[int, int]) -> Progress:
    """What is in one batch of parsed records. `newest`: what the task has seen before it, and sees with it.

    `came`: what was `received` with it.
    """
    columns = pa.table(
        {
            "partition": parsed["partition"],
            "offset": parsed["offset"],
            "received_at": parsed["received_at"],
            "event": pc.equal(parsed["kind"], "event").cast(pa.int64()),
        }
    )
    wanted = [("offset", "max"), ("received_at", "max"), ("event", "sum"), ("received_at", "min")]
    rows: list[dict[str, Any]] = columns.group_by("partition").aggregate(wanted).to_pylist()
    letters, stepped = _dead_letters(parsed), steps(parsed, newest)
    return {
        partition: PartitionProgress(
            row["offset_max"],
            row["received_at_max"],
            row["event_sum"],
            letters.get(partition, Counter()),
            row["received_at_min"],
            stepped[partition],
            came.get(partition, 0),
        )
        for row in rows
        for partition in [row["partition"]]
    }


def _dead_letters(parsed: pa.RecordBatch) -> dict[int, Counter[str]]:
    refused = pa.table({"partition": parsed["partition"], "reason": parsed["reason"]}).filter(
        pc.equal(parsed["kind"], "dead_letter")
    )
    found: dict[int, Counter[str]] = {}
    if refused.num_rows:
        for row in refused.group_by(["partition", "reason"]).aggregate([([], "count_all")]).to_pylist():
            found.setdefault(row["partition"], Counter())[row["reason"]] += row["count_all"]
    return found


class ProgressParam(AccumulatorParam[Progress]):
    """What the tasks of a micro-batch saw, together. Spark merges a task's part before the job that ran it ends.

    A job may merge one part twice: of a task that ran again because its shuffle files were lost, or speculatively.
    """

    def zero(self, value: Progress) -> Progress:  # noqa: ARG002 - Spark's signature
        """Nothing seen."""
        return {}

    def addInPlace(self, value1: Progress, value2: Progress) -> Progress:  # noqa: N802 - Spark's name
        """Both."""
        both = {partition: value1[partition] | value2[partition] for partition in value1.keys() & value2.keys()}
        return {**value1, **value2, **both}
