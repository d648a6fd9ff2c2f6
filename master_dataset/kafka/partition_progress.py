"""What the workers saw while they parsed a micro-batch: how far it reaches in each partition, and what is in it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam

from master_dataset.kafka.stamps import NO_STEP, Newest, steps
from master_dataset.parsing.parse import is_marker
from master_dataset.parsing.rows import headers_of


@dataclass(frozen=True)
class Reached:
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

    def __or__(self, other: "Reached") -> "Reached":
        """Both seen."""
        return Reached(
            max(self.offset, other.offset),
            max(self.received_at, other.received_at),
            self.events + other.events,
            self.dead_letters + other.dead_letters,
            min(self.oldest_at, other.oldest_at),
            max(self.step_back, other.step_back),
            self.received + other.received,
        )


Seen = Mapping[int, Reached]
"""By partition."""


def received(batch: pa.RecordBatch) -> Counter[int]:
    """How many records each partition has in a batch as it comes from Kafka, before any is parsed; no markers."""
    partitions = batch.column("partition")
    if (headers := headers_of(batch)) is None:
        return Counter({each["values"]: each["counts"] for each in partitions.value_counts().to_pylist()})
    return Counter(part for part, each in zip(partitions.to_pylist(), headers, strict=True) if not is_marker(each))


def seen(parsed: pa.RecordBatch, newest: Newest, came: Mapping[int, int]) -> Seen:
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
        partition: Reached(
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


class SeenParam(AccumulatorParam[Seen]):
    """What the tasks of a micro-batch saw, together. Spark merges a task's part before the job that ran it ends.

    A job may merge one part twice: of a task that ran again because its shuffle files were lost, or speculatively.
    """

    def zero(self, value: Seen) -> Seen:  # noqa: ARG002 - Spark's signature
        """Nothing seen."""
        return {}

    def addInPlace(self, value1: Seen, value2: Seen) -> Seen:  # noqa: N802 - Spark's name
        """Both."""
        both = {partition: value1[partition] | value2[partition] for partition in value1.keys() & value2.keys()}
        return {**value1, **value2, **both}
