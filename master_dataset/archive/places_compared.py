"""Records of one partition against what tables have of it, by place: a sum hides one lost beside one twice."""

from bisect import bisect_left
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.kafka.offset_audit import Census


class Compared(NamedTuple):
    """How many: records that are `missing` in every table, `twice` an event and a dead letter, `phantom` rows."""

    missing: int
    twice: int
    phantom: int


def compared(census: Census, events: pa.ChunkedArray, letters: pa.ChunkedArray) -> Compared:
    """`events` and `letters`: offsets within the census. A table may have one several times, which is no fault."""
    own, others = events.unique(), letters.unique()
    twice = pc.sum(pc.is_in(others, value_set=own)).as_py() or 0
    # As numbers in place: Python's own would take five times as much.
    sorted_ = pc.take(kept := pa.chunked_array([own, others], pa.int64()).unique(), pc.sort_indices(kept))
    found = memoryview(sorted_.buffers()[1] or b"").cast("q")[: len(sorted_)]
    there = sum(bisect_left(found, until) - bisect_left(found, first) for first, until in census.runs)
    return Compared(census.records - there, twice, len(sorted_) - there)
