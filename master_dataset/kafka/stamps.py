"""Whether the broker's clock steps back (R1): behind the stamps before it, or below a published cut.

A step within the skew is allowed for by the fence (R2). A larger one may put a record below a cut that is published
already. Nothing is lost by it: the next rebuild finds the record and counts it. Until then it is missing.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from master_dataset.kafka.partition_progress import Seen

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
    seen: "Seen", newest: Mapping[int, datetime], cut: datetime, skew: timedelta
) -> Iterator[tuple[int, str]]:
    """Each partition of a micro-batch in which the clock stepped back, and one sentence about it.

    `newest`: the newest stamp of the micro-batches before. `cut`: one published before this micro-batch was kept; the
    archive had passed its markers then, so nothing that is kept now may be older.
    """
    for partition, each in seen.items():
        step = max(each.step_back, newest.get(partition, each.oldest_at) - each.oldest_at)
        at = f"{each.oldest_at:%F %T} UTC"
        if each.oldest_at < cut:
            yield partition, f"a record is stamped {at}, below the published cut {cut:%F %T} UTC"
        elif step > skew:
            yield partition, f"a stamp near {at} lies {step.total_seconds():.1f} s behind those before it"
