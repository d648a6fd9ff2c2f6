"""What a micro-batch contains of each partition, collected in Spark's workers while they parse it.

It also detects whether the broker's clock steps back (R1): behind earlier timestamps, or below a published cut. The
fence allows for a step within the skew (R2). A larger one may put a record below a cut that is already published; the
next rebuild finds and counts it, until then it is missing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.parse import is_marker
from master_dataset.parsing.rows import headers_of

Newest = MutableMapping[int, int]
"""Partition to its newest stamp so far, in microseconds since 1970."""

NO_STEP = timedelta(0)


def clock_steps(parsed: pa.RecordBatch, newest: Newest) -> dict[int, timedelta]:
    """Return, per partition, how far a timestamp is behind the newest one before it, at most. Updates `newest`.

    Called with all batches of a task in order: one task reads a partition, in the order of offsets (R3).
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
    """Find the partitions of a micro-batch in which the broker's clock stepped back.

    Args:
        progress: What the micro-batch contains.
        newest: Partition to the newest timestamp of the micro-batches before.
        cut: A cut that was published before this micro-batch was archived. The archive had passed its markers then, so
            no record of this micro-batch may be older.
        skew: Steps up to this are allowed for.

    Yields:
        Partition, and one sentence on what happened.
    """
    for partition, each in progress.items():
        step = max(each.step_back, newest.get(partition, each.oldest_at) - each.oldest_at)
        at = f"{each.oldest_at:%F %T} UTC"
        if each.oldest_at < cut:
            yield partition, f"a record has the timestamp {at}, before the published cut {cut:%F %T} UTC"
        elif step > skew:
            yield partition, f"a timestamp near {at} is {step.total_seconds():.1f} s behind earlier ones"


@dataclass(frozen=True)
class PartitionProgress:
    """What a micro-batch contains of one partition.

    `offset`, `received_at`: the greatest. `oldest_at`: the smallest `received_at`. `step_back`: by how much the clock
    stepped back, at most. `received`: records without markers. `dead_letters`: by reason.
    """

    offset: int
    received_at: datetime
    events: int
    dead_letters: Counter[str]
    oldest_at: datetime
    step_back: timedelta = NO_STEP
    received: int = 0

    def __or__(self, other: "PartitionProgress") -> "PartitionProgress":
        """Combine the progress of two batches."""
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
"""Partition to its progress."""


def count_received(batch: pa.RecordBatch) -> Counter[int]:
    """Count the records of each partition in an unparsed batch, without markers."""
    partitions = batch.column("partition")
    if (headers := headers_of(batch)) is None:
        return Counter({each["values"]: each["counts"] for each in partitions.value_counts().to_pylist()})
    return Counter(part for part, each in zip(partitions.to_pylist(), headers, strict=True) if not is_marker(each))


def progress_of(parsed: pa.RecordBatch, newest: Newest, received: Mapping[int, int]) -> Progress:
    """Return what a batch of parsed records contains.

    Args:
        parsed: The rows.
        newest: Partition to the newest timestamp that the task has seen, microseconds since 1970; is updated.
        received: Partition to its records in the unparsed batch.
    """
    columns = pa.table(
        {
            "partition": parsed["partition"],
            "offset": parsed["offset"],
            "received_at": parsed["received_at"],
            "event": pc.equal(parsed["kind"], "event").cast(pa.int64()),
        }
    )
    aggregates = [("offset", "max"), ("received_at", "max"), ("event", "sum"), ("received_at", "min")]
    rows: list[dict[str, Any]] = columns.group_by("partition").aggregate(aggregates).to_pylist()
    dead_letters, stepped = _dead_letters(parsed), clock_steps(parsed, newest)
    return {
        partition: PartitionProgress(
            row["offset_max"],
            row["received_at_max"],
            row["event_sum"],
            dead_letters.get(partition, Counter()),
            row["received_at_min"],
            stepped[partition],
            received.get(partition, 0),
        )
        for row in rows
        for partition in [row["partition"]]
    }


def _dead_letters(parsed: pa.RecordBatch) -> dict[int, Counter[str]]:
    rejected = pa.table({"partition": parsed["partition"], "reason": parsed["reason"]}).filter(
        pc.equal(parsed["kind"], "dead_letter")
    )
    found: dict[int, Counter[str]] = {}
    if rejected.num_rows:
        for row in rejected.group_by(["partition", "reason"]).aggregate([([], "count_all")]).to_pylist():
            found.setdefault(row["partition"], Counter())[row["reason"]] += row["count_all"]
    return found


def combined(one: Progress, other: Progress) -> Progress:
    """The progress of two batches."""
    both = {partition: one[partition] | other[partition] for partition in one.keys() & other.keys()}
    return {**one, **other, **both}
